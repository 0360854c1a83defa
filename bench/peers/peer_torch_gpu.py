"""The peer on a GPU: the GPT of peer_torch.py in bf16 by torch.compile and fused AdamW, on random tokens. Prints what it is, then tokens a second,
a step a line: with the kernel for attention that is faster here.

    python3 peer_torch_gpu.py --layers 12 --width 768 --heads 12 --context 1024 --vocab 50304 --micro 16 --micro-batches 8 --steps 8
"""

import contextlib
import statistics
import time

import torch

import peer_torch


def attention_by(first):
    """Which of its kernels PyTorch is to prefer; its version decides where nothing is said."""
    if first is None:
        return contextlib.nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    order = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]
    order.sort(key=lambda backend: first not in str(backend))
    return sdpa_kernel(order, set_priority=True)


def rates(given, on_gpu):
    """Tokens a second, of each step but the first."""
    torch.manual_seed(1)
    model = peer_torch.Gpt(given).to(given.on)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, **({"fused": True} if on_gpu else {}))

    def loss_of(tokens, targets):
        with torch.autocast(given.on, torch.bfloat16, enabled=on_gpu):
            return peer_torch.loss_of(model(tokens), targets, given)

    micro_batch_loss = torch.compile(loss_of) if on_gpu and not given.plain else loss_of

    def step():
        optimizer.zero_grad(set_to_none=True)
        for _ in range(given.micro_batches):
            # Drawn there, so that nothing waits for a copy.
            drawn = torch.randint(given.vocab, (given.micro, given.context + 1), device=given.on)
            micro_batch_loss(drawn[:, :-1], drawn[:, 1:]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if on_gpu:
            torch.cuda.synchronize()

    step()  # It compiles, and takes its memory.
    tokens = given.micro_batches * given.micro * given.context
    return [tokens / seconds for seconds in peer_torch.timed_steps(given, step)]


def main():
    parser = peer_torch.arguments()
    parser.add_argument("--on", choices=("cuda", "cpu"), default="cuda", help="cpu: in fp32, not compiled")
    parser.add_argument("--plain", action="store_true", help="not compiled")
    given = parser.parse_args()
    on_gpu = given.on == "cuda"
    best = None
    for attention in ("CUDNN", "FLASH") if on_gpu else (None,):
        if on_gpu:
            torch.compiler.reset()
        with attention_by(attention):
            measured = rates(given, on_gpu)
        if best is None or statistics.median(measured) > statistics.median(best[1]):
            best = attention, measured
    attention, measured = best
    how = "" if not on_gpu else f", {'plain' if given.plain else 'compiled'}, attention by {attention.lower()}"
    print(f"PyTorch {torch.__version__}{how}")
    for rate in measured:
        print(f"{rate:.1f}")


main()
