#!/usr/bin/env python3
"""Trains one configuration with several learning rates, two runs at a time, and prints the best.

    python3 sweep.py config/quickstart.toml 3e-4 1e-3 3e-3 1e-2
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from troupe import Client

AT_ONCE = 2


def loss_of(client: Client, run: str) -> float:
    """Returns the last validation loss, or without validation the loss of the last step."""
    loss = float("inf")
    for event in client.events(run):
        if event["type"] in ("eval", "step"):
            loss = event.get("loss", loss)
    return loss


def sweep(client: Client, config: str, rates: Iterable[float], **settings: Any) -> dict[float, float]:
    waiting = list(rates)
    under_way: list[tuple[float, str]] = []
    found: dict[float, float] = {}
    while waiting or under_way:
        while waiting and len(under_way) < AT_ONCE:
            rate = waiting.pop(0)
            of_rate: dict[str, Any] = {**settings, "name": f"sweep-{rate:g}", "optimizer.lr": rate}
            under_way.append((rate, client.submit(config, **of_rate)))
        rate, run = under_way.pop(0)
        found[rate] = loss_of(client, run)
        print(f"lr {rate:<8g} loss {found[rate]:.4f}  ({client.status(run)['state']})", flush=True)
    return found


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with Client() as head:
        losses = sweep(head, sys.argv[1], map(float, sys.argv[2:]))
    best = min(losses, key=losses.__getitem__)
    print(f"best: lr {best:g}, loss {losses[best]:.4f}")
