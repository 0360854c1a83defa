#!/usr/bin/env bash
# keep_usage.sh COMPILE...: runs the command of a CUDA compiler. Keeps what the assembler tells of
# registers and memory (-Xptxas=-v) in OBJECT.usage, and prints one line of it.
set -uo pipefail
object=
for word; do
  [ "${previous-}" = -o ] && object=$word
  previous=$word
done
[ -n "$object" ] || exec "$@"
"$@" >"$object.usage" 2>&1
outcome=$?
# The assembler's lines are for the file. All other lines are the compiler's messages.
grep -vE '^ptxas info|bytes stack frame|^$' "$object.usage" >&2
[ "$outcome" = 0 ] || exit "$outcome"
awk -v object="$(basename "$object" .o)" '
  /bytes stack frame/ { spilled += $5 + $9; stack += $1 }
  / Used [0-9]+ registers/ {
    ++kernels
    for (i = 1; i < NF; ++i) if ($i == "Used" && $(i + 1) > most) most = $(i + 1) + 0
  }
  END {
    if (kernels) printf "%s: %d kernel%s, at most %d registers, %d bytes of stack, %d bytes spilled\n",
      object, kernels, kernels == 1 ? "" : "s", most, stack, spilled
  }' "$object.usage"
