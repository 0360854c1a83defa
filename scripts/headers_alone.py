"""Compiles headers alone: headers_alone.py TOOLKIT [FEWEST] <NAMES, where TOOLKIT is a folder of CUDA's headers.

The names lie below this folder. Prints each header that does not compile alone, and then fails.

Most of the time goes to headers of the standard library and of CAF. So for FEWEST headers or more (50 unless given) a few
sets of them are precompiled. A header gets a set only if it includes all of the set, itself or through other headers. So
its own code sees nothing more than without the set, and a missing #include is found in the header that misses it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

# How long the compiler takes to read one, in milliseconds, about (g++ 12, 2026-11-28). The order of these does not matter.
COSTS = {
    "algorithm": 250, "atomic": 60, "caf/all.hpp": 1500, "chrono": 400, "condition_variable": 350, "deque": 90,
    "filesystem": 500, "fstream": 300, "functional": 200, "map": 120, "memory": 250, "mutex": 350, "optional": 60,
    "random": 350, "set": 110, "span": 120, "sstream": 300, "string": 250, "string_view": 180, "thread": 350,
    "tuple": 50, "unordered_map": 130, "variant": 60, "vector": 110,
}
MOST_SETS = 12
FLAGS = ["-std=c++20", "-I.", "-Itests", '-DTROUPE_TEST_DATA=""']

Set = frozenset[str]


@lru_cache(maxsize=None)
def included(name: str) -> tuple[str, ...]:
    """The headers that this one includes always, as it names them."""
    depth, found = 0, []
    for line in Path(name).read_text(encoding="utf-8").splitlines():
        if re.match(r"\s*#\s*if", line):
            depth += 1
        elif re.match(r"\s*#\s*endif", line):
            depth -= 1
        elif depth == 0 and (one := re.match(r'\s*#\s*include\s+[<"]([^>"]+)', line)):
            found.append(one[1])
    return tuple(found)


def costly_below(name: str) -> Set:
    """The costly headers that this header includes, itself or through others."""
    seen: set[str] = set()
    left = [name]
    while left:
        here = left.pop()
        if here in seen:
            continue
        seen.add(here)
        if here not in COSTS:
            left += included(here) if Path(here).is_file() else []
    return frozenset(seen & COSTS.keys())


def cost(headers: Set) -> int:
    return sum(COSTS[header] for header in headers)


def best_of(sets: list[Set], below: Set) -> Set:
    return max((one for one in sets if one <= below), key=cost, default=frozenset())


def choose_sets(needed: list[Set]) -> list[Set]:
    """Chooses one set after the other, each time the one that saves most."""
    chosen: list[Set] = []
    candidates = set(needed)
    for _ in range(MOST_SETS):
        saved = [cost(best_of(chosen, below)) for below in needed]

        def gain(one: Set) -> int:
            own = cost(one)
            return sum(max(0, own - now) for below, now in zip(needed, saved) if one <= below) - own

        best = max(candidates, key=gain, default=frozenset())
        if not best or gain(best) <= 0:
            break
        chosen.append(best)
        candidates.remove(best)
    return chosen


def compiler(toolkit: str) -> list[str]:
    return ["g++", *FLAGS, "-idirafter", toolkit]


def precompile(folder: str, toolkit: str, sets: list[Set]) -> dict[Set, str]:
    """The headers of the sets, by set, each beside its compiled form."""
    paths = {}
    for number, one in enumerate(sets):
        paths[one] = f"{folder}/set{number}.h"
        Path(paths[one]).write_text("".join(f"#include <{header}>\n" for header in sorted(one)), encoding="utf-8")

    def compile_one(path: str) -> None:
        subprocess.run([*compiler(toolkit), "-x", "c++-header", path, "-o", f"{path}.gch"], check=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_one, paths.values()))
    return paths


def compiles(name: str, toolkit: str, before: str | None) -> bool:
    command = [*compiler(toolkit), "-fsyntax-only", "-x", "c++", "-"]
    if not name.startswith("transport/"):  # NCCL's header there wants CUDA's own.
        command.insert(1, "-Itests/cuda_on_cores")
    if before:
        command[1:1] = ["-include", before]
    return subprocess.run(command, input=f'#include "{name}"\n', text=True, check=False).returncode == 0


def main() -> int:
    toolkit, names = sys.argv[1], sys.stdin.read().split()
    fewest = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    below = {name: costly_below(name) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        sets = choose_sets(list(below.values())) if len(names) >= fewest else []
        paths = precompile(folder, toolkit, sets)

        def check(name: str) -> bool:
            if compiles(name, toolkit, paths.get(best_of(sets, below[name]))):
                return True
            print(f"{name} does not compile alone")
            return False

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return 0 if all(list(pool.map(check, names))) else 1


sys.exit(main())
