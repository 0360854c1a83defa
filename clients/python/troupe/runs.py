"""Reads the folders of runs without a head."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Event = dict[str, Any]
Columns = dict[str, list[Any]]

# Fields of events that are not columns.
_NO_COLUMNS = ("type", "run", "staleness")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that still exists on disk."""

    step: int
    folder: Path
    weights: str  # The digest of its weights.


@dataclass(frozen=True)
class Run:
    """The contents of a run's folder."""

    name: str
    folder: Path
    config: dict[str, Any]  # Every key of the configuration. Empty if the folder has no config.toml.
    lives: list[dict[str, Any]]  # The processes that led the run: time, command, host, version, commit.
    state: str  # The last recorded state: also "running" if the process was killed.
    why: str
    events: list[Event]  # All recorded events, including steps that were repeated later.
    checkpoints: list[Checkpoint]
    history: Columns  # The result of history().
    evals: Columns  # "step" and "loss" of the validation data.


def history(run: str | os.PathLike[str]) -> Columns:
    """Returns the steps of a run as columns: "step", "loss", "grad_norm", "lr", "rate", "time" and more.

    `run` is the name of a run below ./runs, or its folder. Each step appears once: if a run went back
    to a checkpoint, repeated steps replace the earlier ones. A value that an event lacks is None.
    """
    return _columns(_events(_folder(run)), "step")


def read_run(run: str | os.PathLike[str]) -> Run:
    """Reads the folder of a run. `run` is the name of a run below ./runs, or its folder."""
    folder = _folder(run)
    events = _events(folder)
    states = [event for event in events if event["type"] == "run.state"]
    last = states[-1] if states else {}
    config = folder / "config.toml"
    about = folder / "about.json"
    return Run(
        name=next((event["run"] for event in events if event.get("run")), folder.name),
        folder=folder,
        config=tomllib.loads(config.read_text()) if config.exists() else {},
        lives=json.loads(about.read_text())["lives"] if about.exists() else [],
        state=last.get("state", ""),
        why=last.get("why", ""),
        events=events,
        checkpoints=_checkpoints(folder, events),
        history=_columns(events, "step"),
        evals=_columns(events, "eval"),
    )


def _folder(run: str | os.PathLike[str]) -> Path:
    below = Path("runs") / run
    return below if below.exists() else Path(run)


def _events(folder: Path) -> list[Event]:
    # events.1.jsonl has the events before those in events.jsonl, which restarts when it is large.
    older = folder / "events.1.jsonl"
    return (_events_in(older) if older.exists() else []) + _events_in(folder / "events.jsonl")


def _events_in(path: Path) -> list[Event]:
    try:
        # Only "\n" ends a line: splitlines() also breaks at other characters of a text.
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        raise FileNotFoundError(
            f"{path}: {error.strerror}; wanted the name of a run below ./runs, or its folder"
        ) from None
    events: list[Event] = []
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            event = json.loads(line)
        except ValueError as error:
            if number == len(lines):
                break  # The process was killed while it wrote this line.
            raise ValueError(f"{path}:{number}: found no JSON ({error}); wanted an event in each line") from None
        is_step = isinstance(event, dict) and event.get("type") in ("step", "eval")
        if not isinstance(event, dict) or not isinstance(event.get("type"), str) or (
            is_step and type(event.get("step")) is not int
        ):
            raise ValueError(f"{path}:{number}: found {line[:80]}; wanted an event with its type (and step)")
        events.append(event)
    return events


def _columns(events: Iterable[Event], kind: str) -> Columns:
    rows: list[Event] = []
    for event in events:
        if event["type"] != kind:
            continue
        while rows and rows[-1]["step"] >= event["step"]:
            rows.pop()
        rows.append(event)
    names = dict.fromkeys(["step", "loss", *(name for row in rows for name in row if name not in _NO_COLUMNS)])
    return {name: [row.get(name) for row in rows] for name in names}


def _checkpoints(folder: Path, events: Iterable[Event]) -> list[Checkpoint]:
    """Returns the complete checkpoints by step; `folder` may have been moved since the run."""
    found: dict[int, Checkpoint] = {}
    for event in events:
        if event["type"] != "checkpoint.saved":
            continue
        directory = Path(event["directory"])
        for place in (folder / "checkpoints" / directory.name, directory):
            if (place / "manifest.json").exists():
                found[event["step"]] = Checkpoint(event["step"], place, event.get("weights", ""))
                break
    return [found[step] for step in sorted(found)]
