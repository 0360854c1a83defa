#!/usr/bin/env bash
# Trains over three nodes while processes of nodes and of the head die and paths between machines are cut, for a time or one
# way only. Cuts and deaths overlap. The weights must be those of the run in one process.
#
#     chaos.sh TROUPE        exits with 77 where namespaces cannot be made
#
# TROUPE_CHAOS_EVENTS: how many deaths and cuts, else 12. TROUPE_CHAOS_SEED: what draws them.
set -euo pipefail
# shellcheck source=tests/hosts/inside.sh
. "$(dirname "${BASH_SOURCE[0]}")/inside.sh"
nodes=(alpha beta gamma) head_words=(--supervised)
# shellcheck source=tests/hosts/machines.sh
. "$(dirname "${BASH_SOURCE[0]}")/machines.sh"

events=${TROUPE_CHAOS_EVENTS:-12}
seed=${TROUPE_CHAOS_SEED:-$(($(date +%N | sed 's/^0*//') % 32768))}
RANDOM=$seed
story=runs/chaos/events.jsonl

on head env TROUPE_KEYS=/mnt/me.key troupe submit run.toml --set name=chaos --set pipeline.stages=2 --set train.steps=1000000 \
  --set elastic.nodes=1:3 --set 'checkpoint.every=20 steps' >submit.log 2>&1 || fail "the run was refused"
last_step() { grep -o '"type":"step".*' "$story" 2>/dev/null | grep -o '"step":[0-9]*' | tail -n 1 | cut -d : -f 2; }
steps_told() { grep -c '"type":"step"' "$story" 2>/dev/null || true; }
declare -A cut_until=()
mend_due() { # Mends the paths whose time has come; with `all`, every path.
  local path
  for path in "${!cut_until[@]}"; do
    if [ "${1:-}" = all ] || [ "${cut_until[$path]}" -le "$SECONDS" ]; then
      mend_way "${path%:*}" "${path#*:}"
      unset "cut_until[$path]"
    fi
  done
}
# Waits until the run has told of more steps. Repeated steps count. Mends paths meanwhile.
let_steps_pass() { # COUNT
  local wanted=$(($(steps_told) + $1)) end=$((SECONDS + 120))
  until [ "$(steps_told)" -ge "$wanted" ]; do
    [ "$SECONDS" -le "$end" ] || fail "seed $seed: the run does not go on after event $event"
    mend_due
    sleep 0.05
  done
}

kill_child() { # MACHINE
  local child
  for child in $(pgrep -P "${started[$1]}"); do kill -KILL "$child" || true; done
}
cut_path() { # FROM TO
  [ -z "${cut_until[$1:$2]:-}" ] || return 0
  cut_way "$1" "$2"
  cut_until[$1:$2]=$((SECONDS + 1 + RANDOM % 5))
}

deaths=0 cuts=0
for ((event = 1; event <= events; ++event)); do
  let_steps_pass $((5 + RANDOM % 20))
  one=${machines[RANDOM % 4]} other=${machines[RANDOM % 4]}
  if [ "$one" = "$other" ] || [ $((RANDOM % 2)) -eq 0 ]; then
    kill_child "$one"
    deaths=$((deaths + 1))
  else
    cut_path "$one" "$other"
    if [ $((RANDOM % 3)) -gt 0 ]; then cut_path "$other" "$one"; fi
    cuts=$((cuts + 1))
  fi
done
mend_due all
let_steps_pass 20

# The head may be dead at the moment, so the order is given until it is heard.
steps=''
for ((try = 0; try < 100; ++try)); do
  steps=$(($(last_step) + 40))
  if on head env TROUPE_KEYS=/mnt/me.key troupe set chaos "train.steps=$steps" >set.log 2>&1; then break; fi
  sleep 0.3
done
end=$((SECONDS + 180))
until grep -qsE '"type":"run.state".*"state":"(done|failed|stopped)"' "$story"; do
  [ "$SECONDS" -le "$end" ] || fail "seed $seed: the run does not end"
  sleep 0.1
done
end_all
found=$(sed -n 's/.*"type":"checkpoint.saved".*"weights":"\([0-9a-f]*\)".*/\1/p' "$story" | tail -n 1)
mkdir undisturbed
(cd undisturbed && troupe train ../run.toml -q --set "train.steps=$steps") || fail "the run in one process"
wanted=$(digest undisturbed)
[ "$found" = "$wanted" ] || fail "seed $seed: other weights after $steps steps: $found, not $wanted"
echo "seed $seed: $deaths deaths and $cuts cuts in $steps steps, the weights are $wanted"
