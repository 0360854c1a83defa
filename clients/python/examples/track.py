#!/usr/bin/env python3
"""Follows a run of a head, and reports its numbers to Weights & Biases or to MLflow.

    python3 track.py wandb quickstart
    python3 track.py mlflow quickstart

It can begin at any time: it reports a run from its first step. It needs `pip install wandb` or
`pip install mlflow`.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from troupe import Client, HeadError

NAMES = {
    "loss": "train/loss", "grad_norm": "train/gradient_norm", "lr": "train/learning_rate", "rate": "train/rate",
    "bubble": "run/bubble", "goodput": "run/goodput", "memory": "run/memory",
}


def numbers(event: dict[str, Any]) -> dict[str, float]:
    """Returns the numbers of a step or an evaluation by name; none for other events."""
    if event["type"] == "eval":
        return {"validation/loss": event["loss"]}
    if event["type"] != "step":
        return {}
    return {name: event[key] for key, name in NAMES.items() if event.get(key) is not None}


def to_wandb(client: Client, run: str) -> str:
    """Returns the state in which the run has ended."""
    import wandb

    tracked = wandb.init(project="troupe", name=run)
    # After a recovery steps come again, which W&B would ignore if they counted its own steps.
    tracked.define_metric("*", step_metric="step")
    for event in client.events(run):
        if found := numbers(event):
            tracked.log({"step": event["step"], **found})
    state = str(client.status(run)["state"])
    tracked.finish(exit_code=1 if state == "failed" else 0)
    return state


def to_mlflow(client: Client, run: str) -> str:
    """Returns the state in which the run has ended."""
    import mlflow

    mlflow.set_experiment("troupe")
    mlflow.start_run(run_name=run)
    for event in client.events(run):
        if found := numbers(event):
            mlflow.log_metrics(found, step=event["step"])
    state = str(client.status(run)["state"])
    mlflow.end_run({"failed": "FAILED", "stopped": "KILLED"}.get(state, "FINISHED"))
    return state


TRACKERS: dict[str, Callable[[Client, str], str]] = {"wandb": to_wandb, "mlflow": to_mlflow}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in TRACKERS:
        sys.exit(__doc__)
    try:
        with Client() as head:
            print(f"{sys.argv[2]}: {TRACKERS[sys.argv[1]](head, sys.argv[2])}")
    except ImportError:
        sys.exit(f"track.py: found no {sys.argv[1]}; install it with `pip install {sys.argv[1]}` in a virtual environment")
    except HeadError as error:
        sys.exit(f"track.py: {error}")
