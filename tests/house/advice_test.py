"""Checks that every command, option and key that a message of the program names exists: advice_test.py TROUPE ROOT.

A message is a string literal of the program's sources. Names the file, the line and the word that does not exist.
"""

import re
import subprocess
import sys
from pathlib import Path

FOLDERS = ["core", "kernels", "models", "storage", "schedules", "transport", "config", "actors", "simulation", "apps"]
# Scripts that name options of other programs.
NO_MESSAGES = ["node_scripts.cpp", "render_kubernetes.cpp", "render_slurm.cpp", "render_ssh.cpp", "completion.cpp"]
OPTIONS_OF_OTHERS = {"--cpunodebind", "--membind", "--shm-size"}  # numactl, docker
# Words after `troupe` in a sentence, and names of other things.
NO_COMMANDS = {"in", "is", "term"}


def literals(text: str) -> list[tuple[int, str]]:
    """Returns the string literals of a source with their lines. Joins adjacent literals."""
    found = []
    code = re.sub(r"//[^\n\"]*\n", lambda comment: "\n", text)
    for match in re.finditer(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', code):
        joined = "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', match.group()))
        found.append((code.count("\n", 0, match.start()) + 1, joined))
    return found


def help_of(program: str, command: list[str]) -> str:
    return subprocess.run([program, *command, "--help"], check=True, capture_output=True, text=True).stdout


def subcommands(text: str) -> list[str]:
    """Returns the commands that a help lists: the program's in several groups, a command's in one."""
    parts = re.split(r"^(\S.*):$", text, flags=re.MULTILINE)
    groups = [body for title, body in zip(parts[1::2], parts[2::2]) if title not in ("Positionals", "Options", "Examples")]
    return re.findall(r"^  ([a-z][a-z0-9-]*) ", "".join(groups), re.MULTILINE)


def main() -> int:
    program, root = sys.argv[1], Path(sys.argv[2])
    top = help_of(program, [])
    commands = [*subcommands(top), "node-process", "man"]
    helps = [top]
    for command in commands:
        helps.append(help_of(program, [command]))
        helps += [help_of(program, [command, each]) for each in subcommands(helps[-1])]
    options = set(re.findall(r"--[a-z][a-z-]*", "\n".join(helps))) | OPTIONS_OF_OTHERS
    reference = (root / "docs/reference/config.md").read_text(encoding="utf-8")
    wrong = []
    files = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*")) if path.suffix in (".cpp", ".h")]
    count = 0
    for path in files:
        if path.name in NO_MESSAGES:
            continue
        for line, text in literals(path.read_text(encoding="utf-8")):
            where = f"{path.relative_to(root)}:{line}"
            count += 1
            wrong += [f"{where}: there is no option {one}" for one in re.findall(r"(?<![\w-])--[a-z][a-z-]+", text) if one not in options]
            for one in re.findall(r"\btroupe ([a-z][a-z-]+)(?![\w-])", text):
                if one not in commands and one not in NO_COMMANDS:
                    wrong.append(f"{where}: there is no command `troupe {one}`")
            # "set KEY = VALUE" names a section and a key, or only a key.
            for one in re.findall(r"\b(?:set|use|write) ([a-z_]+(?:\.[a-z_]+)*) = ", text):
                if not re.search(rf"\b{re.escape(one.rsplit('.')[-1])}\b", reference):
                    wrong.append(f"{where}: there is no key {one}")
    print("\n".join(wrong) or f"{count} literals of {len(files)} sources name only what exists")
    return 1 if wrong or count < 1000 else 0


sys.exit(main())
