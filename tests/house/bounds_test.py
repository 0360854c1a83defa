#!/usr/bin/env python3
"""Checks that docs/explanation/bounds.md names bounds that the source has."""

import re
import sys
from pathlib import Path

root = Path(sys.argv[1])
page = root / "docs/explanation/bounds.md"
problems, rows = [], 0
for number, line in enumerate(page.read_text().splitlines(), 1):
    if not line.startswith("|") or line.startswith(("|---", "| what |")):
        continue
    rows += 1
    place = re.search(r"\| `([^`]+)`: `([^`]+)` \|$", line)
    if not place:
        problems.append(f"{page}:{number}: the last cell is not `FILE`: `TEXT`")
        continue
    file, text = place.groups()
    source = root / file
    if not source.is_file():
        problems.append(f"{page}:{number}: there is no {file}")
    elif text not in source.read_text():
        problems.append(f"{page}:{number}: {file} does not contain: {text}")
if rows < 30:
    problems.append(f"{page}: found {rows} bounds; was the table cut?")
print("\n".join(problems) or f"{rows} bounds are in the source")
sys.exit(bool(problems))
