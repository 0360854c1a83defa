"""Whether a missing #include is found, also where most headers have it: headers_alone_test.py ROOT."""

import subprocess
import sys
import tempfile
from pathlib import Path

USES = "inline std::vector<std::string> texts_of_{0}() {{ return {{}}; }}\n"
STRING, VECTOR = "#include <string>\n", "#include <vector>\n"


def alone(headers: dict[str, str], fewest: int = 2) -> tuple[int, list[str]]:
    """The exit status for these headers, and the names of those that are reported."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in headers.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text("#pragma once\n" + text, encoding="utf-8")
        script = Path(sys.argv[1], "scripts/headers_alone.py")
        ended = subprocess.run(
            [sys.executable, script, "/usr/local/cuda/include", str(fewest)], cwd=folder, input="\n".join(headers),
            capture_output=True, text=True, check=False,
        )
    return ended.returncode, [line.split()[0] for line in ended.stdout.splitlines()]


def check(found: object, wanted: object) -> None:
    if found != wanted:
        sys.exit(f"found {found}, wanted {wanted}")


# Enough headers that include both, so that both are in a set.
many = {f"core/both{i}.h": STRING + VECTOR + USES.format(i) for i in range(5)}
check(alone(many), (0, []))

lacking = {
    **many,
    "core/lacks.h": STRING + USES.format("a"),
    # Includes both before and after the header that lacks one.
    "core/after.h": STRING + VECTOR + '#include "core/lacks.h"\n' + USES.format("b"),
    "core/through.h": '#include "core/both1.h"\n' + USES.format("c"),
    "core/maybe.h": STRING + "#if 0\n" + VECTOR + "#endif\n" + USES.format("d"),
}
check(alone(lacking), (1, ["core/lacks.h", "core/maybe.h"]))
check(alone({name: lacking[name] for name in ("core/lacks.h", "core/both2.h")}, fewest=3), (1, ["core/lacks.h"]))
