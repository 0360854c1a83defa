"""The peer: the same GPT in PyTorch as its users write it today, with the same batching, on random tokens.

Prints one line of JSON about itself, then the seconds of each step, one a line:

    python3 peer_torch.py --layers 6 --width 384 --heads 6 --context 256 --vocab 4096 --micro 4 --micro-batches 8 --threads 1
"""

import argparse
import json
import time

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.before_mlp = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def attend(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(attended.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attend(self.before_attention(x))
        hidden = functional.gelu(self.up(self.before_mlp(x)), approximate="tanh")
        return x + self.down(hidden)


class Gpt(nn.Module):
    def __init__(self, given):
        super().__init__()
        self.tokens = nn.Embedding(given.vocab, given.width)
        self.positions = nn.Embedding(given.context, given.width)
        self.blocks = nn.ModuleList(Block(given.width, given.heads) for _ in range(given.layers))
        self.norm = nn.LayerNorm(given.width)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.tokens.weight.t()


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


def facts():
    """What PyTorch is, and what it computes with."""
    settings = torch.__config__.show()
    libraries = [name for name, sign in (("oneDNN", "USE_MKLDNN=ON"), ("MKL", "USE_MKL=ON")) if sign in settings]
    blas = settings.partition("BLAS_INFO=")[2].partition(",")[0]
    return {
        "torch": torch.__version__,
        "capability": torch.backends.cpu.get_cpu_capability(),
        "libraries": ", ".join(libraries + [blas] * (blas not in ("", "mkl"))),
    }


def whole_step(given):
    """Makes the model, and returns a function that takes one step: all micro-batches, clipping and AdamW."""
    model = Gpt(given)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, fused=True)

    def micro_batch_loss(tokens, targets):
        with torch.autocast("cpu", torch.bfloat16, enabled=given.precision == "bf16"):
            logits = model(tokens)
        return loss_of(logits.float(), targets, given)

    if given.compile:
        micro_batch_loss = torch.compile(micro_batch_loss)

    def step():
        optimizer.zero_grad(set_to_none=True)
        for _ in range(given.micro_batches):
            micro_batch_loss(*batch(given)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def arguments():
    parser = argparse.ArgumentParser()
    for name in ("layers", "width", "heads", "context", "vocab", "micro", "micro-batches", "threads", "steps"):
        parser.add_argument("--" + name, type=int, default=4)
    return parser


def main():
    parser = arguments()
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32", help="bf16: by autocast")
    parser.add_argument("--compile", action="store_true", help="by torch.compile; it needs a C++ compiler")
    parser.add_argument("--limit", type=float, default=1e9, help="after these seconds, stop with at least three steps")
    given = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(given.threads)
    print(json.dumps(facts()), flush=True)
    taken = []
    for seconds in timed_steps(given, whole_step(given)):
        print(f"{seconds:.6f}", flush=True)
        taken.append(seconds)
        if len(taken) > 2 and sum(taken[1:]) > given.limit:
            break


if __name__ == "__main__":
    main()
