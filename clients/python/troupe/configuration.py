"""A configuration as the body of a message."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any, Mapping

_LONGEST_CHAIN = 16


def _merge(lower: dict[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """Merges tables key by key and replaces all other values."""
    for key, value in upper.items():
        below = lower.get(key)
        if isinstance(value, Mapping):  # Copies the caller's table, because settings are written to it.
            value = _merge(below if isinstance(below, dict) else {}, value)
        lower[key] = value
    return lower


def _read(path: Path, left: int = _LONGEST_CHAIN) -> dict[str, Any]:
    text = path.read_text()
    tree: dict[str, Any] = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    base = tree.pop("extends", None)
    if base is None:
        return tree
    if left == 0:
        raise ValueError(f"{path}: a chain of more than {_LONGEST_CHAIN} files that extend each other")
    return _merge(_read(path.parent / base, left - 1), tree)


def configuration(
    config: str | os.PathLike[str] | Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns a file (TOML or JSON) or a table with settings: "optimizer.lr" or optimizer__lr."""
    if isinstance(config, Mapping):
        tree = _merge({}, config)
    else:
        path = Path(config)
        tree = _read(path)
        tree.setdefault("name", re.sub(r"[^A-Za-z0-9._-]", "-", path.stem)[:64])
    for name, value in settings.items():
        *tables, last = name.replace("__", ".").split(".")
        at = tree
        for table in tables:
            at = at.setdefault(table, {})
        at[last] = value
    return tree
