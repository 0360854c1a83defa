"""Mistakes that tests must find: reads tests/mutations/mutations.txt."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass
class Mutation:
    name: str
    file: str
    text: str
    other: str

    def apply(self, root: Path) -> None:
        path = root / self.file
        path.write_text(path.read_text(encoding="utf-8").replace(self.text, self.other), encoding="utf-8")


def read_mutations(root: Path) -> list[Mutation]:
    """Raises ValueError, with the place, for a mutation that is not complete."""
    path = root / "tests/mutations/mutations.txt"
    blocks: list[dict[str, str]] = [{}]
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            blocks.append({})
        elif not line.startswith("#"):
            key, separator, value = line.partition(":")
            if not separator or key not in ("name", "file", "text", "with"):
                raise ValueError(f"{path}:{number}: found {line!r}, wanted name, file, text or with")
            blocks[-1][key] = value.strip()
    mutations = []
    for block in filter(None, blocks):
        if len(block) != 4:
            raise ValueError(f"{path}: {block.get('name', block)} has only {', '.join(block)}")
        mutations.append(Mutation(block["name"], block["file"], block["text"], block["with"]))
    return mutations


def wrong_places(root: Path) -> list[str]:
    """The mutations whose text does not occur exactly once in its file."""
    wrong = []
    mutations = read_mutations(root)
    for mutation in mutations:
        path = root / mutation.file
        times = path.read_text(encoding="utf-8").count(mutation.text) if path.exists() else 0
        if times != 1:
            wrong.append(f"{mutation.name}: {mutation.file} has its text {times} times, wanted once")
    names = [mutation.name for mutation in mutations]
    wrong += [f"{name}: two mutations have this name" for name in sorted({n for n in names if names.count(n) > 1})]
    return wrong
