#!/usr/bin/env python3
"""Trains a run and halves its learning rate when the loss stops falling.

    python3 plateau.py config/quickstart.toml

Each change is part of the run's record. The script prints them at the end; with `troupe train --set`
they give the same weights without this script.
"""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from troupe import Client, HeadError

SMOOTHING = 0.9
ENOUGH = 0.005  # A smaller relative decrease counts as a plateau.


def train(client: Client, config: str, patience: int = 40, **settings: Any) -> list[tuple[int, float]]:
    """Returns the changes: the step after which each applies, and the new rate."""
    run = client.submit(config, **settings)
    changes: list[tuple[int, float]] = []
    smooth = best = float("inf")
    best_step = 0
    for event in client.events(run):
        if event["type"] != "step":
            continue
        step, loss, rate = event["step"], event["loss"], event["lr"]
        smooth = loss if smooth == float("inf") else SMOOTHING * smooth + (1 - SMOOTHING) * loss
        if smooth < best * (1 - ENOUGH):
            best, best_step = smooth, step
        if step - best_step < patience:
            continue
        rate = changes[-1][1] / 2 if changes else rate / 2
        try:
            after = client.set(run, "optimizer.lr", rate)
        except HeadError as error:  # The run has ended meanwhile.
            print(f"step {step}: the rate stays: {error}")
            continue
        changes.append((after, rate))
        best, best_step = smooth, max(step, after)
        print(f"step {step}: the loss stands still at {smooth:.4f}; lr {rate:g} after step {after}", flush=True)
    print(f"{run}: {client.status(run)['state']}")
    return changes


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with Client() as head:
        made = train(head, sys.argv[1])
    if made:
        changes = ", ".join(f"{rate!r} from {step}" for step, rate in made)
        print(f'the same again: troupe train {sys.argv[1]} --set "optimizer.changes={changes}"')
