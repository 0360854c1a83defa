"""Whether kernels keep to their registers: usage_test.py LIMITS [FOLDER].

FOLDER holds what the build kept of each source (kernels/cuda/keep_usage.sh). No kernel may use local
memory for a stack or for spilled registers, and each has a limit of registers in the file LIMITS.
Without a folder there is no CUDA compiler, and the test is skipped.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ARCHITECTURE = "sm_90"  # The limits are for its registers.


@dataclass
class Usage:
    source: str
    kernel: str
    stack: int
    spilled: int
    registers: int


@dataclass
class Limit:
    registers: int
    words: list[str]
    line: int
    is_used: bool = False


def limits_of(path: Path) -> list[Limit]:
    limits = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.partition("#")[0].split()
        if words:
            limits.append(Limit(int(words[0]), words[1:], number))
    return limits


def usages_of(kept: Path) -> Iterator[Usage]:
    """The usage of each kernel of a source, with mangled names."""
    entry = re.compile(
        r"Compiling entry function '(\S+)' for '" + ARCHITECTURE + r"'\n"
        r".*Function properties for \1\n"
        r" *(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\n"
        r".*Used (\d+) registers"
    )
    for name, stack, stores, loads, registers in entry.findall(kept.read_text()):
        yield Usage(kept.name.removesuffix(".o.usage"), name, int(stack), int(stores) + int(loads), int(registers))


def demangled(names: list[str]) -> list[str]:
    told = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
    return told.stdout.splitlines()


def complaints(usage: Usage, limits: list[Limit], path: Path) -> Iterator[str]:
    where = f"{usage.source}: {usage.kernel}"
    if usage.stack or usage.spilled:
        yield (
            f"{where}: found {usage.stack} bytes of stack and {usage.spilled} bytes spilled, wanted none; "
            "keep fewer numbers at once or allow fewer blocks in __launch_bounds__"
        )
    limit = next((each for each in limits if all(word in usage.kernel for word in each.words)), None)
    if limit is None:
        yield f"{where}: found no limit of its registers; add one to {path}"
        return
    limit.is_used = True
    if usage.registers > limit.registers:
        yield (
            f"{where}: found {usage.registers} registers, wanted at most {limit.registers} "
            f"({path}:{limit.line})"
        )


def main() -> int:
    path = Path(sys.argv[1])
    if len(sys.argv) < 3:
        print("skipped: there is no CUDA compiler")
        return 0
    folder = Path(sys.argv[2])
    kept = sorted(folder.rglob("*.cu.o.usage"))
    usages = [usage for source in kept for usage in usages_of(source)]
    if kept and not usages:
        print(f"skipped: the kernels are not compiled for {ARCHITECTURE}")
        return 0
    silent = [source for source in kept if not any(usages_of(source))]
    if silent or not kept:
        what = f"{silent[0]}: found no kernels" if silent else f"{folder}: found no *.cu.o.usage"
        print(f"{what}, wanted what the assembler told of each source; build the target troupe_cuda again")
        return 1
    for usage, name in zip(usages, demangled([usage.kernel for usage in usages])):
        usage.kernel = name.replace("troupe::kernels::cuda::", "").replace("(anonymous namespace)::", "")
    limits = limits_of(path)
    wrong = [text for usage in usages for text in complaints(usage, limits, path)]
    wrong += [
        f"{path}:{limit.line}: found no kernel of this limit; remove it" for limit in limits if not limit.is_used
    ]
    print("\n".join(wrong) or f"{len(usages)} kernels keep to their registers")
    return 1 if wrong else 0


sys.exit(main())
