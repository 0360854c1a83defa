"""What Gloo takes for half a round trip between two processes, by PyTorch; `troupe bench transport` runs it.

    python3 peer_gloo.py BYTES COUNT [BYTES COUNT ...]        prints "BYTES microseconds"
"""

import os
import sys
import tempfile
import time

import torch
import torch.distributed as distributed


def main() -> None:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        rank = 1 if (child := os.fork()) == 0 else 0
        distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[-1 if rank else 0]})
        numbers = [int(word) for word in sys.argv[1:]]
        for size, turns in zip(numbers[::2], numbers[1::2]):
            measure(rank, size, turns)
        if rank == 1:
            os._exit(0)
        os.waitpid(child, 0)


def measure(rank: int, size: int, turns: int) -> None:
    out = torch.ones(size, dtype=torch.uint8)
    come = torch.ones(size, dtype=torch.uint8)
    start = 0.0
    for turn in range(-1, turns):
        if turn == 0:
            start = time.perf_counter()
        if rank == 0:
            distributed.send(out, 1)
            distributed.recv(come, 1)
        else:
            distributed.recv(come, 0)
            distributed.send(out, 0)
    if rank == 0:
        print(size, f"{(time.perf_counter() - start) / turns / 2 * 1e6:.4f}", flush=True)


main()
