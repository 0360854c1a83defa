"""Whether the program keeps what its tables promise: promises_test.py TROUPE ROOT.

- Production code outside config/ reads every configuration key.
- Every message type has a sender and a receiver in production code, and the table names its fields.
- A test runs every command.
- Each event of a run's machine is told by production code, each order is carried out, and a test of the
  machine names each row.

Prints each promise that nobody keeps.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

FOLDERS = ["core", "kernels", "models", "storage", "schedules", "transport", "actors", "simulation", "apps"]
STRING = r'"(?:[^"\\\n]|\\.)*"'

# The expression that reads a key, where it is not `section.key`.
READERS = {
    "name": "config.name",
    "seed": "config.seed",
    "exactness": "config.exactness",
    "optimizer.kind": "config.kind",
    "optimizer.lr": "rate.lr",
    "optimizer.changes": "rate.changes",
    "optimizer.momentum": "config.momentum",
    "optimizer.momentum_form": "config.momentum_form",
    "optimizer.nesterov": "config.nesterov",
    "optimizer.betas": "config.beta1",
    "optimizer.eps": "config.eps",
    "optimizer.weight_decay": "config.weight_decay",
    "optimizer.clip_norm": "config.clip_norm",
    "precision.loss_scale.initial_power": "precision.loss_scale_power",
    "precision.loss_scale.growth_interval": "precision.growth_interval",
    "staleness.second_moment": "staleness_.second_moment",
    "checkpoint.dir": "checkpoint.directory",
    "train.export": "train.export_path",
}
# Code that reads a key without naming the member of the configuration.
CODE = {
    "parallel.groups": "config::reduction_groups(config,",
    "optimizer.group": "config.optimizer.groups",
    "optimizer.schedule.kind": "switch (rate.kind)",
    "optimizer.schedule.warmup_steps": "step < rate.warmup_steps",
    "optimizer.schedule.total_steps": "step >= rate.total_steps",
    "optimizer.schedule.min_lr": "height - rate.min_lr",
    "optimizer.schedule.decay_steps": "decay_steps.value_or(",
    "optimizer.schedule.decay": "rate.decay ==",
}
# config/ replaces these keys by others, and the program reads the others.
REPLACED = {"extends", "staleness.preset"}
# Members of the model's table that are no options of its kind.
MODEL = {"model.kind": "model.kind", "model.init": "model.init"}

# Calls that make a message without naming its struct.
MADE_BY = {"Refusal": r"transport::refusal\(", "Interlude": r"leader_\.hold\(\{"}


def without_comments(text: str) -> str:
    """The source with its strings, without its comments."""
    return re.sub(rf"({STRING})|//[^\n]*|/\*.*?\*/", lambda found: found[1] or "", text, flags=re.DOTALL)


def without_strings(text: str) -> str:
    return re.sub(STRING, '""', text)


def sources(root: Path, folders: list[str], suffixes: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes:
                found[str(path.relative_to(root))] = path.read_text(encoding="utf-8", errors="replace")
    return found


def keys_of(schema: dict, above: str = "") -> Iterator[str]:
    """The dotted keys of a JSON schema; a table may have alternatives."""
    names = {}
    for part in [schema, *schema.get("allOf", []), *schema.get("anyOf", []), *schema.get("oneOf", [])]:
        for side in (part, part.get("then", {}), part.get("else", {})):
            names.update(side.get("properties", {}))
    for name, value in names.items():
        is_table = isinstance(value, dict) and value.get("type") == "object"
        if is_table:
            yield from keys_of(value, f"{above}{name}.")
        else:
            yield above + name


def has_word(text: str, word: str, before: str, after: str = "") -> bool:
    """Whether a text has a word between what the expressions take. Begins with the word, which is found fast."""
    return bool(re.search(rf"{re.escape(word)}(?<={before}{re.escape(word)}){after}", text))


def unread_keys(keys: list[str], production: dict[str, str]) -> Iterator[str]:
    code = without_strings("\n".join(production.values()))
    models = "\n".join(text for path, text in production.items() if path.startswith("models/"))
    for key in keys:
        if key in REPLACED:
            continue
        if key.startswith("model.") and key not in MODEL:
            leaf = key.split(".")[-1]
            is_read = has_word(models, f'(options, "{leaf}")', before=r"\w") or f'options.find("{leaf}")' in models
            wanted = f'a call such as integer(options, "{leaf}") in models/'
        elif key in CODE:
            is_read = CODE[key] in code
            wanted = f"'{CODE[key]}'"
        else:
            wanted = READERS.get(key, ".".join(key.split(".")[-2:]))
            is_read = has_word(code, wanted, before=r"\W", after=r"(?![\w(])")
        if not is_read:
            yield f"the key {key}: nothing outside config/ reads it; wanted {wanted}"


def message_types(text: str) -> dict[str, list[str]]:
    """The types of the table and their handlers."""
    table = text[text.index("MessageType table[] = {") : text.index("}  // namespace rows")]
    rows = re.findall(r'^    \{"([a-z_.]+)", (.*?)\},?$(?=\n    \{|\n\n|\n\};)', table, re.MULTILINE | re.DOTALL)
    return {name: re.findall(r"H::(\w+)", row) for name, row in rows}


def structs_of(production: dict[str, str]) -> dict[str, str]:
    """By message type the struct that has it."""
    found = {}
    for text in production.values():
        for struct, body in re.findall(r"^struct (\w+) \{\n(.*?)^\};", text, re.MULTILINE | re.DOTALL):
            if declared := re.search(r'string_view type = "([a-z_.]+)"', body):
                found.setdefault(declared[1], struct)
    return found


def fields_of(body: str) -> dict[str, bool]:
    """By field of the table's text whether it is optional; fields stand in backticks, optional ones in brackets."""
    outside = re.sub(r"\([^)]*\)", "", body)
    optional = {name for part in re.findall(r"\[([^\]]*)\]", outside) for name in re.findall(r"`(\w+)`", part)}
    return {name: name in optional for name in re.findall(r"`(\w+)`", outside)}


def wrong_fields(table: str, production: dict[str, str]) -> Iterator[str]:
    texts = [text for path, text in production.items() if "decide/" not in path and "journal" not in path]
    structs = [one for text in texts for one in re.findall(r"^struct \w+ \{\n(.*?)^\};", text, re.MULTILINE | re.DOTALL)]
    declared = {}
    for struct in structs:
        if (name := re.search(r'string_view type = "([a-z_.]+)"', struct)) and "fields()" in struct:
            found = re.findall(r'\b(required|optional)\("(\w+)"', struct)
            declared[name[1]] = {field: presence == "optional" for presence, field in found}
    rows = re.findall(r'^    \{"([a-z_.]+)", (\w+), [^"]*((?:"[^"]*"\s*)+),', table, re.MULTILINE)
    checked = 0
    for name, topic, literals in rows:
        body = "".join(re.findall(r'"([^"]*)"', literals))
        if name not in declared or topic == "event":  # docs/reference/program.md has the fields of events.
            continue
        checked += 1
        if fields_of(body) != declared[name]:
            yield f"the message {name}: the table has the fields {body or 'none'}, its struct has {declared[name]}"
    if checked < 20:
        yield f"compared the fields of {checked} messages; wanted more than 20"


@lru_cache(maxsize=None)
def lines_of(text: str) -> list[str]:
    return text.split("\n")


def lines_with(word: str, text: str) -> str:
    return "\n".join(line for line in lines_of(text) if word in line)


def is_sent(struct: str, code: str) -> bool:
    """Whether code makes one, as a value, a variable or a result of a function."""
    made = [
        rf"(?<![\w ]){struct}\{{|[(,=?: ](?<!struct ){struct}\{{",  # Struct{...}
        rf"(?<!\w){struct} \w+(?:;| = |\{{)",  # Struct name;
        rf"(?<!\w){struct} \w+\([^;{{]*\) \{{",  # Struct function(...) {
        rf"(?<!\w){struct}\(\)",  # Struct()
        rf"<{struct}>\(",  # send<Struct>(...)
        rf"const {struct}& (\w+)\) \{{ [^}}]*to_message\(\1\)",
        MADE_BY.get(struct, "$^"),
    ]
    lines = code if struct in MADE_BY else lines_with(struct, code)
    return any(re.search(one, lines) for one in made)


def is_received(struct: str, code: str) -> bool:
    """Whether a behavior takes one, or code compares a message's type with its type."""
    lines = lines_with(struct, code)
    behavior = rf"\]\((?:const )?(?:\w+::)?{struct}(?:& ?\w*)?\)"
    return bool(re.search(rf"{behavior}|== (?:\w+::)*{struct}::type|\{{(?:\w+::)*{struct}::type, ", lines))


def unused_messages(root: Path, production: dict[str, str], client: str) -> Iterator[str]:
    table = message_types((root / "transport/wire/message_types.h").read_text(encoding="utf-8"))
    if len(table) < 40:
        yield f"found {len(table)} messages in transport/wire/message_types.h; wanted more than 40"
    rest = {path: text for path, text in production.items() if path != "transport/wire/message_types.h"}
    control = "\n".join(text for path, text in rest.items() if not path.startswith("simulation/"))
    structs = structs_of({path: text for path, text in rest.items() if "decide/" not in path and "journal" not in path})
    events = (root / "docs/reference/program.md").read_text(encoding="utf-8").split("\n## Events\n")[1]
    player = r"std::tuple<([^;]*)>;"
    travelling = re.search(r"using Travelling =\s*" + player, control)
    players = set(re.findall(r"\w+", travelling[1])) if travelling else set()
    named = rf'(?:\b(?:ask|about_run|event|run_event)\([^;"]*|MessageName(?: \w+ =|\() ?)"([a-z_.]+)"'
    said = set(re.findall(named, control)) | set(re.findall(r'self\.ask\(\s*"([a-z_.]+)"', client))
    for name, handlers in table.items():
        struct = structs.get(name, "")
        word = re.escape(name)
        sent = name in said
        sent = sent or bool(struct and is_sent(struct, control))
        if not sent:
            yield f"the message {name}: no production code sends it"
        received = bool(re.search(rf'\{{"{word}", |MessageName \w+ = "{word}"', control))
        received = received or bool(struct and is_received(struct, control)) or struct in players
        received = received or ("listener" in handlers and f"`{name}`" in events)
        if not received:
            yield f"the message {name}: no production code receives it, and docs/reference/program.md has no such event"
    # Messages between actors.
    actors = "\n".join(text for path, text in production.items() if path.startswith(("actors/", "apps/")))
    declared = re.findall(r"CAF_ALLOW_UNSAFE_MESSAGE_TYPE\((?:\w+::)*(\w+)\)", actors)
    if len(declared) < 20:
        yield f"found {len(declared)} messages between actors; wanted more than 20"
    for struct in declared:
        if not is_sent(struct, actors):
            yield f"the actors' message {struct}: no production code sends it"
        if not is_received(struct, actors) and struct not in players:
            yield f"the actors' message {struct}: no behavior receives it"


def help_of(program: str, command: list[str]) -> str:
    return subprocess.run([program, *command, "--help"], check=True, capture_output=True, text=True).stdout


def subcommands(text: str) -> list[str]:
    """Returns the commands that a help lists: the program's in several groups, a command's in one."""
    parts = re.split(r"^(\S.*):$", text, flags=re.MULTILINE)
    groups = [body for title, body in zip(parts[1::2], parts[2::2]) if title not in ("Positionals", "Options", "Examples")]
    return re.findall(r"^  ([a-z][a-z0-9-]*) ", "".join(groups), re.MULTILINE)


def untested_commands(program: str, root: Path) -> Iterator[str]:
    cpp = "\n".join(sources(root, ["tests"], (".cpp", ".h")).values())
    scripts = "\n".join(sources(root, ["tests"], (".py", ".sh")).values())
    commands = []
    for command in subcommands(help_of(program, [])):
        below = subcommands(help_of(program, [command]))
        commands += [[command, each] for each in below] or [[command]]
    if len(commands) < 40:
        yield f"found {len(commands)} commands in the help of the program; wanted more than 40"
    for command in commands:
        quoted = ", ".join(f'"{word}"' for word in command)
        if re.search(rf'{quoted}(?<=[({{]{quoted})[,}})]', cpp):
            continue
        bare = r"\W+".join(command)
        if not re.search(rf'(?:\btroupe|TROUPE\w*|\bprogram)\W+{bare}(?![\w-])', scripts + "\n" + cpp):
            yield f"the command troupe {' '.join(command)}: no test runs it; wanted {{{quoted}, ...}} in tests/"


def variant(text: str, name: str) -> list[str]:
    """The alternatives of `using NAME = std::variant<...>`."""
    return re.findall(r"\w+", re.search(rf"using {name} =\s*std::variant<([^;]*)>;", text)[1])


def idle_machine(root: Path, production: dict[str, str]) -> Iterator[str]:
    around = "\n".join(text for path, text in production.items() if path.startswith(("actors/nodes/", "actors/lead/")))
    events = variant(production["actors/decide/events.h"], "Event")
    orders = variant(production["actors/decide/orders.h"], "Order")
    rows = re.findall(r"\w+", re.search(r"enum class Row [^{]*\{([^}]*)\}", production["actors/decide/run_machine.h"])[1])
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (root / "tests/actors/decide").glob("*_test.cpp"))
    if min(len(events), len(orders), len(rows)) < 5:
        yield f"found {len(events)} events, {len(orders)} orders and {len(rows)} rows of the machine; wanted more"
    for event in events:
        made = rf"decide::{event}(?: \w+)?\{{|decide::{event} before;"
        if not re.search(made, around):
            yield f"the machine's event {event}: nothing in actors/lead or actors/nodes tells it"
    for order in orders:
        if not re.search(rf"on\(const decide::{order}&", around):
            yield f"the machine's order {order}: nothing in actors/nodes carries it out"
    for row in rows:
        if not re.search(rf"Row::{row}\b", tests):
            yield f"the machine's row {row}: no test in tests/actors/decide names it"


def main() -> int:
    program, root = sys.argv[1], Path(sys.argv[2])
    production = {path: without_comments(text) for path, text in sources(root, FOLDERS, (".cpp", ".h", ".cu")).items()}
    client = "\n".join(sources(root, ["clients/python/troupe"], (".py",)).values())
    schema = subprocess.run([program, "config", "schema"], check=True, capture_output=True, text=True).stdout
    keys = sorted(set(keys_of(json.loads(schema))))
    broken = [f"found {len(keys)} keys in the schema; wanted more than 60"] if len(keys) < 60 else []
    broken += unread_keys(keys, production)
    broken += unused_messages(root, production, client)
    table = production["transport/wire/message_types.h"]
    broken += wrong_fields(table[table.index("MessageType table[]") :], production)
    broken += untested_commands(program, root)
    broken += idle_machine(root, production)
    print("\n".join(broken) or f"{len(keys)} keys are read, and all messages and commands are used")
    return 1 if broken else 0


sys.exit(main())
