#!/usr/bin/env bash
# Where PyTorch's environment cannot be made, scripts/peer-venv says why in one line and leaves nothing behind.
set -euo pipefail
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

refuses() {  # refuses TEXT COMMAND ...: the command ends with 1 and prints one line with the text.
  local text=$1 said code=0
  shift
  said=$("$@" 2>/dev/null) || code=$?
  [ "$code" -eq 1 ] || { echo "wanted exit code 1, found $code: $said"; exit 1; }
  [ "$(wc -l <<<"$said")" -eq 1 ] || { echo "wanted one line, found: $said"; exit 1; }
  [[ $said == *"$text"* ]] || { echo "wanted '$text' in: $said"; exit 1; }
  [ ! -e "$work/venv" ] || { echo "a folder was left behind after: $said"; exit 1; }
}

refuses 'there is no no-such-python' env PYTHON=no-such-python "$root/scripts/peer-venv" "$work/venv"
# A Python without headers, and one that makes no environments.
printf '#!/bin/sh\nexit 1\n' >"$work/bare"
# shellcheck disable=SC2016  # The script expands it.
printf '#!/bin/sh\n[ "$1" = -c ]\n' >"$work/half"
chmod +x "$work/bare" "$work/half"
refuses 'install python3-dev' env PYTHON="$work/bare" "$root/scripts/peer-venv" "$work/venv"
refuses 'install python3-venv' env PYTHON="$work/half" "$root/scripts/peer-venv" "$work/venv"

# What is there is not made again.
mkdir "$work/venv"
cp "$root/bench/peers/requirements.txt" "$work/venv"
"$root/scripts/peer-venv" "$work/venv"
rm -r "$work/venv"

# No network: pip finds no such package.
python3 -c 'import ensurepip, os, sysconfig, sys; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' 2>/dev/null ||
  { echo "skipped: python3-venv or python3-dev is not installed"; exit 0; }
refuses 'pip install failed' env PIP_NO_INDEX=1 PIP_FIND_LINKS= "$root/scripts/peer-venv" "$work/venv"
