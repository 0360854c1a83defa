#!/usr/bin/env bash
# The head's own plan over three machines must be about as fast as the best of four others: one
# node, two stages, three stages and two replicas, each measured by a run.
#
#     plans.sh TROUPE        exits with 77 if namespaces cannot be made
#
# TROUPE_PLANS_PARTS: "fast" (the cable between namespaces), "slow" (10 Mbit/s, a delay of 50 ms,
# 1 % of packets lost; slow_hub.py), or both. Without it the test is skipped, as it takes minutes.
set -euo pipefail
parts=${TROUPE_PLANS_PARTS:-}
[ -n "$parts" ] || { echo 'skipped: takes minutes; set TROUPE_PLANS_PARTS to "fast slow"'; exit 77; }
# shellcheck source=tests/hosts/inside.sh
. "$(dirname "${BASH_SOURCE[0]}")/inside.sh"
hub_program=$(dirname "$(realpath "${BASH_SOURCE[0]}")")/slow_hub.py

nodes=(alpha beta gamma) head_words=()
# shellcheck source=tests/hosts/machines.sh
. "$(dirname "${BASH_SOURCE[0]}")/machines.sh"

# Prints the median time of the steps in the last half of a run, or in its last quarter, in ms.
step_time() { # NAME PART
  python3 - "runs/$1/events.jsonl" "$2" <<'PY'
import json, statistics, sys
steps = [e["seconds"] for e in map(json.loads, open(sys.argv[1])) if e["type"] == "step"]
print(round(1000 * statistics.median(steps[-max(1, len(steps) // int(sys.argv[2])):]), 2))
PY
}
run() { # NAME STEPS NODES settings...
  local name=$1 steps=$2 some=$3
  shift 3
  # Large enough that the work of a step counts.
  local -a settings=(name="$name" train.steps="$steps" elastic.nodes="$some" model.context=64 model.width=64
    batch.global=32 batch.micro=4 'checkpoint.every=100000 steps' "$@")
  # shellcheck disable=SC2046 # Each setting is one word or quoted above.
  on head env TROUPE_KEYS=/mnt/me.key troupe submit run.toml --wait --output plain "${settings[@]/#/--set=}" >"$name.log" 2>&1 ||
    fail "the run $name"
}
# Runs each of four plans. `best` is the shortest time of a step in ms.
try_all() { # PREFIX STEPS_OF_ONE STEPS
  run "$1-one" "$2" 1:1 pipeline.stages=1
  run "$1-two" "$3" 2:2 pipeline.stages=2
  run "$1-three" "$3" 3:3 pipeline.stages=3
  run "$1-replicas" "$3" 2:2 pipeline.stages=1 pipeline.replicas=2
  local plan time
  best=
  for plan in one two three replicas; do
    time=$(step_time "$1-$plan" 2)
    echo "$1: $plan: $time ms a step"
    if [ -z "$best" ] || awk "BEGIN {exit !($time < $best)}"; then best=$time best_plan=$plan; fi
  done
}
part() { # PREFIX STEPS_OF_ONE STEPS STEPS_OF_AUTO
  local time again
  # Other work on this machine disturbs measurements, so both sides may be measured again.
  for again in 1 2 3; do
    try_all "$1-$again" "$2" "$3"
    run "$1-$again-auto" "$4" 1:3 pipeline.stages=auto pipeline.replicas=auto pipeline.schedule=auto
    time=$(step_time "$1-$again-auto" 4)
    echo "$1: auto: $time ms a step, and $best ms with the best plan ($best_plan)"
    grep -E 'expected time of a step|is expected to take|placement' "$1-$again-auto.log" || fail "$1: the run does not say why it has its plan"
    awk "BEGIN {exit !($time <= 1.1 * $best)}" && break
    [ "$again" -lt 3 ] || fail "$1: the head's own plan takes $time ms a step, and the best plan $best ms"
  done
  on head env TROUPE_KEYS=/mnt/me.key troupe plan run.toml --head "$TROUPE_HEAD" --set pipeline.stages=auto --set pipeline.replicas=auto >"$1-plan.log"
  grep -q 'GFLOP/s' "$1-plan.log" || { cat "$1-plan.log"; fail "$1: the plan does not show how fast processors are"; }
  grep -q 'alpha to beta\|beta to alpha' "$1-plan.log" || { cat "$1-plan.log"; fail "$1: the plan does not show how fast links are"; }
  sed -n '/^link/,/^$/p' "$1-plan.log"
}

case " $parts " in *' fast '*) part fast 600 600 2500 ;; esac
case " $parts " in
  *' slow '*)
    for one in "${machines[@]}"; do
      on "$one" python3 "$hub_program" --whole-frames cable
      ip link set "to-$one" nomaster
    done
    exec {ready}< <(exec python3 "$hub_program" --rate 10e6 0.05 0.01 "${machines[@]/#/to-}")
    hub=$!
    read -r -u "$ready" || fail "the slow hub does not begin"
    part slow 100 8 600
    kill "$hub"
    for one in "${machines[@]}"; do ip link set "to-$one" master bridge; done
    ;;
esac
end_all
