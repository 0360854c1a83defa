#!/usr/bin/env python3
"""Compares how replicas exchange gradients: the loss, the time of a step, and the weights. The weights
must be equal for every exchange and number of replicas.

    python3 exchanges.py config/quickstart.toml
"""

import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from troupe import Client, HeadError

EXCHANGES = ("all_to_all", "server")
REPLICAS = (1, 2)
WARM_UP = 5  # The times of these first steps are ignored.


def measure(client: Client, config: str, **settings: Any) -> dict[str, Any]:
    run = client.submit(config, **settings)
    loss, weights = float("nan"), ""
    seconds: list[float] = []
    for event in client.events(run):
        if event["type"] == "step":
            loss = event["loss"]
            if event["step"] > WARM_UP:
                seconds.append(event["seconds"])
        elif event["type"] == "checkpoint.saved":
            weights = event["weights"]
    if client.status(run)["state"] != "done":
        raise HeadError(f"{run}: {client.status(run)['why']}")
    return {"loss": loss, "seconds": statistics.median(seconds), "weights": weights}


def compare(client: Client, config: str, **settings: Any) -> dict[str, set[str]]:
    """Returns the weights of each exchange over all numbers of replicas: one digest if they agree."""
    made: dict[str, set[str]] = {}
    chosen: dict[str, Any]
    for exchange in EXCHANGES:
        for replicas in REPLICAS:
            chosen = {"parallel.exchange": exchange, "pipeline.replicas": replicas, "pipeline.stages": 1}
            try:
                got = measure(client, config, name=f"{exchange}-{replicas}", **chosen, **settings)
            except HeadError as error:
                print(f"{exchange:<12} {replicas} replicas: {error}", flush=True)
                continue
            made.setdefault(exchange, set()).add(str(got["weights"]))
            print(
                f"{exchange:<12} {replicas} replicas: loss {got['loss']:.6f}"
                f"  {1000 * got['seconds']:.1f} ms a step  weights {got['weights']}",
                flush=True,
            )
    return made


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with Client() as head:
        made: set[str] = set().union(*compare(head, sys.argv[1]).values())
    print("all have made the same weights" if len(made) == 1 else f"found {len(made)} different weights")
