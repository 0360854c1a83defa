"""The peer on a GPU: the same GPT in bf16 by torch.compile and fused AdamW, on random tokens. Prints what it is, then tokens a second,
a step a line.

    python3 peer_torch_gpu.py --layers 12 --width 768 --heads 12 --context 1024 --vocab 50304 --micro 16 --micro-batches 8 --steps 8
"""

import time

import torch
from torch.nn import functional

import peer_torch


class Block(peer_torch.Block):
    """Attention as PyTorch has it fastest."""

    def attend(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(attended.transpose(1, 2).reshape(batch, length, width))


def main():
    parser = peer_torch.arguments()
    parser.add_argument("--on", choices=("cuda", "cpu"), default="cuda", help="cpu: in fp32, not compiled")
    given = parser.parse_args()
    torch.manual_seed(1)
    on_gpu = given.on == "cuda"
    model = peer_torch.Gpt(given, Block).to(given.on)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, **({"fused": True} if on_gpu else {}))

    def loss_of(tokens, targets):
        with torch.autocast(given.on, torch.bfloat16, enabled=on_gpu):
            return peer_torch.loss_of(model(tokens), targets, given)

    micro_batch_loss = torch.compile(loss_of) if on_gpu else loss_of

    def step():
        optimizer.zero_grad(set_to_none=True)
        for _ in range(given.micro_batches):
            tokens, targets = (part.to(given.on) for part in peer_torch.batch(given))
            micro_batch_loss(tokens, targets).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if on_gpu:
            torch.cuda.synchronize()

    print(f"PyTorch {torch.__version__}{', compiled' if on_gpu else ''}", flush=True)
    step()  # It compiles, and takes its memory.
    for _ in range(given.steps):
        begin = time.perf_counter()
        step()
        tokens = given.micro_batches * given.micro * given.context
        print(f"{tokens / (time.perf_counter() - begin):.1f}", flush=True)


main()
