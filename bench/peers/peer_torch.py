"""The peer: the same GPT in PyTorch, with the same batching, on random tokens. Prints seconds a step, one a line.

    python3 peer_torch.py --layers 6 --width 384 --heads 6 --context 256 --vocab 4096 --micro 4 --micro-batches 8 --threads 1
"""

import argparse
import os
import time

import torch
from torch import distributed, nn
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
    def __init__(self, given, block=Block):
        super().__init__()
        self.tokens = nn.Embedding(given.vocab, given.width)
        self.positions = nn.Embedding(given.context, given.width)
        self.blocks = nn.ModuleList(block(given.width, given.heads, given.context) for _ in range(given.layers))
        self.norm = nn.LayerNorm(given.width)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.tokens.weight.t()


class Front(nn.Module):
    """The first layers of a Gpt, on tokens."""

    def __init__(self, whole, blocks):
        super().__init__()
        self.tokens, self.positions, self.blocks = whole.tokens, whole.positions, whole.blocks[:blocks]

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return x


class Back(nn.Module):
    """The last layers; the head has weights of its own, which asks less of this peer than tied ones would."""

    def __init__(self, whole, blocks):
        super().__init__()
        self.blocks, self.norm = whole.blocks[blocks:], whole.norm
        self.head = nn.Parameter(whole.tokens.weight.detach().clone())

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.head.t()


def batch(given):
    tokens = torch.randint(given.vocab, (given.micro, given.context + 1))
    return tokens[:, :-1], tokens[:, 1:]


def loss_of(logits, targets, given):
    return functional.cross_entropy(logits.reshape(-1, given.vocab), targets.reshape(-1)) / given.micro_batches


def timed_steps(given, step):
    for _ in range(given.steps):
        begin = time.perf_counter()
        step()
        yield time.perf_counter() - begin


def whole_model(given):
    model = Gpt(given)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    def step():
        optimizer.zero_grad(set_to_none=True)
        for _ in range(given.micro_batches):
            tokens, targets = batch(given)
            loss_of(model(tokens), targets, given).backward()
        optimizer.step()

    for seconds in timed_steps(given, step):
        print(f"{seconds:.6f}", flush=True)


def two_stages(given, rank):
    """1F1B over gloo between two processes, cut in the middle."""
    distributed.init_process_group("gloo", init_method=f"file://{given.meeting}", rank=rank, world_size=2)
    whole = Gpt(given)
    part = (Front if rank == 0 else Back)(whole, given.layers // 2)
    optimizer = torch.optim.AdamW(part.parameters(), lr=3e-4)
    shape = (given.micro, given.context, given.width)

    def front_step():
        optimizer.zero_grad(set_to_none=True)
        waiting, sent = [], []

        def forward():
            y = part(batch(given)[0])
            sent.append(distributed.isend(y.detach(), 1))
            waiting.append(y)

        def backward():
            dy = torch.empty(shape)
            distributed.recv(dy, 1)
            waiting.pop(0).backward(dy)

        forward()
        for _ in range(given.micro_batches - 1):
            forward()
            backward()
        backward()
        for request in sent:
            request.wait()
        optimizer.step()

    def back_step():
        optimizer.zero_grad(set_to_none=True)
        sent = []
        for _ in range(given.micro_batches):
            x = torch.empty(shape)
            distributed.recv(x, 0)
            x.requires_grad_()
            loss_of(part(x), batch(given)[1], given).backward()
            sent.append((distributed.isend(x.grad, 0), x))
        for request, _ in sent:
            request.wait()
        optimizer.step()

    for seconds in timed_steps(given, front_step if rank == 0 else back_step):
        if rank == 0:
            print(f"{seconds:.6f}", flush=True)


def arguments():
    parser = argparse.ArgumentParser()
    for name in ("layers", "width", "heads", "context", "vocab", "micro", "micro-batches", "threads", "steps"):
        parser.add_argument("--" + name, type=int, default=4)
    return parser


def main():
    parser = arguments()
    parser.add_argument("--meeting", help="a new file: then two processes of one thread each, by 1F1B over gloo")
    given = parser.parse_args()
    torch.manual_seed(1)
    if not given.meeting:
        torch.set_num_threads(given.threads)
        return whole_model(given)
    torch.set_num_threads(1)
    child = os.fork()
    two_stages(given, 0 if child else 1)
    if child:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
