#!/usr/bin/env bash
# Draws the loss of a run that loses a node: bash docs/explanation/draw-recovery.sh
# Starts a head and two nodes on this machine, trains config/quickstart.toml over them, kills one node
# with SIGKILL after step 20, and marks that step in pictures/loss-after-kill.svg.
# TROUPE=PROGRAM uses that program instead of building one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

kill_at=20
if [ -z "${TROUPE:-}" ]; then
  ./dev build release
  TROUPE=build/release/apps/troupe
fi
TROUPE=$(realpath "$TROUPE")
picture=$PWD/docs/explanation/pictures/loss-after-kill.svg
config=$PWD/config/quickstart.toml
folder=$(mktemp -d)
started=()
clean_up() {
  [ ${#started[@]} -eq 0 ] || kill "${started[@]}" 2>/dev/null || true
  wait
  rm -rf "$folder"
}
trap clean_up EXIT
cd "$folder"

# Reads lines from file descriptor $1 until one matches $2.
read_until() {
  local line
  while IFS= read -r line <&"$1"; do [[ $line =~ $2 ]] && return; done
  echo "draw-recovery.sh: the program ended before it printed '$2'" >&2
  exit 1
}

exec 3< <(exec "$TROUPE" head --listen 127.0.0.1:0 --events 127.0.0.1:0 --http off 2>&1)
started+=($!)
read_until 3 '(tcp://[0-9.]+:[0-9]+)'
export TROUPE_HEAD=${BASH_REMATCH[1]}
for name in alpha beta; do
  "$TROUPE" node --name "$name" >"$name.log" 2>&1 &
  started+=($!)
done
beta=$!

exec 4< <(exec "$TROUPE" submit "$config" --set name=survivor --set log.every=1 --wait 2>&1)
read_until 4 "^step $kill_at "
# A node is a daemon and the process that computes. This kills the process; the daemon starts another.
kill -KILL "$(ps -o pid= --ppid "$beta" | head -n 1)"
read_until 4 'survivor.*done'


# The same run without the kill must end with the same weights.
"$TROUPE" submit "$config" --set name=undisturbed --wait -q
weights_of() { grep -o '"weights":"[0-9a-f]*"' "runs/$1/events.jsonl" | tail -n 1; }
if [ "$(weights_of survivor)" != "$(weights_of undisturbed)" ]; then
  echo "draw-recovery.sh: the weights differ from those of an undisturbed run" >&2
  exit 1
fi

field() { sed -n "/\"type\":\"run.recovered\"/s/.*\"$1\":\([0-9.]*\).*/\1/p" runs/survivor/events.jsonl; }
"$TROUPE" report survivor --format svg --title "loss of a run that loses one of its two nodes" \
  --out plain.svg
# The labels of the step axis give the scale: x = x0 + (step - s0) * (x1 - x0) / (s1 - s0).
awk -v from="$(field step)" -v repeated="$(field redone)" -v seconds="$(field seconds)" '
  match($0, /<text class="mid" x="[0-9.]+" y="307">[0-9]+/) {
    split(substr($0, RSTART, RLENGTH), part, /[">]/)
    if (!count++) { x0 = part[4]; s0 = part[8] }
    x1 = part[4]; s1 = part[8]
  }
  /<\/svg>/ {
    step = from + repeated
    x = x0 + (step - s0) * (x1 - x0) / (s1 - s0)
    printf "<path stroke=\"#d55e00\" stroke-width=\"1.5\" stroke-dasharray=\"4 3\" "
    printf "d=\"M%.2f 52L%.2f 290\"/>\n", x, x
    printf "<text x=\"%.2f\" y=\"66\">kill -9 of node beta after step %d</text>\n", x + 8, step
    printf "<text x=\"%.2f\" y=\"82\">recovered in %.2f s from in-memory copies; ", x + 8, seconds
    printf "steps repeated: %d</text>\n", repeated
  }
  { print }' plain.svg >"$picture"
