"""The peer: the same GPT in PyTorch, with the same batching, on random tokens. Prints seconds a step, one a line.

    python3 peer_torch.py --layers 6 --width 384 --heads 6 --context 256 --vocab 4096 --micro 4 --micro-batches 8 --threads 1
"""

import argparse
import time

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.before_mlp = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.register_buffer("later", torch.ones(context, context, dtype=torch.bool).triu(1))

    def attend(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(2, 3) * (width // self.heads) ** -0.5
        weights = scores.masked_fill(self.later[:length, :length], float("-inf")).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attend(self.before_attention(x))
        hidden = functional.gelu(self.up(self.before_mlp(x)), approximate="tanh")
        return x + self.down(hidden)


class Gpt(nn.Module):
    def __init__(self, given):
        super().__init__()
        self.tokens = nn.Embedding(given.vocab, given.width)
        self.positions = nn.Embedding(given.context, given.width)
        self.blocks = nn.ModuleList(Block(given.width, given.heads, given.context) for _ in range(given.layers))
        self.norm = nn.LayerNorm(given.width)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.tokens.weight.t()


def main():
    parser = argparse.ArgumentParser()
    for name in ("layers", "width", "heads", "context", "vocab", "micro", "micro-batches", "threads", "steps"):
        parser.add_argument("--" + name, type=int, default=4)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(1)
    model = Gpt(given)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for _ in range(given.steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        for _ in range(given.micro_batches):
            tokens = torch.randint(given.vocab, (given.micro, given.context + 1))
            logits = model(tokens[:, :-1])
            loss = functional.cross_entropy(logits.reshape(-1, given.vocab), tokens[:, 1:].reshape(-1))
            (loss / given.micro_batches).backward()
        optimizer.step()
        print(f"{time.perf_counter() - begin:.6f}", flush=True)


main()
