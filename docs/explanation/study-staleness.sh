#!/usr/bin/env bash
# Makes the tables and the picture of staleness.md, from all of its runs:
#     bash docs/explanation/study-staleness.sh [losses | memory]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

names=(synchronous stale ws msnag ws_msnag_ga)
seeds=(6 7 8 9 10)  # Not those by which the case was chosen.

train() {  # train CONFIG NAME SETTING...
  local config=$1 name=$2 settings=() setting
  shift 2
  for setting in "name=study-$name" "$@"; do settings+=(--set "$setting"); done
  ./dev troupe train "config/study/$config.toml" -q "${settings[@]}"
}

last() {  # last RUN TYPE FIELD: a number of the run's last event of that type.
  grep "\"type\":\"$2\"" "runs/study-$1/events.jsonl" | tail -n 1 | sed -E "s/.*\"$3\":([-0-9.e+]+).*/\1/"
}

losses() {
  local name seed
  for seed in "${seeds[@]}"; do
    for name in "${names[@]}"; do train "$name" "$name-$seed" "seed=$seed"; done
  done
  for name in "${names[@]}"; do
    for seed in "${seeds[@]}"; do echo "$name $seed $(last "$name-$seed" eval loss)"; done
  done | awk '
    !($1 in sum) { order[++count] = $1 }
    { if (count == 1) seed[++seeds] = $2; loss[$1, $2] = $3; sum[$1] += $3 }
    function recovered(x, stale, goal) { return sprintf("%.0f %%", 100 * (stale - x) / (stale - goal)) }
    END {
      printf "|"; for (s = 1; s <= seeds; ++s) printf " | seed %d", seed[s]
      print " | mean | of the gap recovered: mean (each seed) |"
      printf "|---"; for (s = 1; s <= seeds; ++s) printf "|---"
      print "|---|---|"
      for (i = 1; i <= count; ++i) {
        name = order[i]; printf "| `%s`", name
        for (s = 1; s <= seeds; ++s) printf " | %.3f", loss[name, seed[s]]
        printf " | %.3f | ", sum[name] / seeds
        if (i > 2) {
          printf "%s (", recovered(sum[name], sum["stale"], sum["synchronous"])
          for (s = 1; s <= seeds; ++s)
            printf "%s%s", recovered(loss[name, seed[s]], loss["stale", seed[s]], loss["synchronous", seed[s]]), s < seeds ? ", " : ")"
        }
        print " |"
      }
    }'
  local folders=()
  for name in "${names[@]}"; do folders+=("runs/study-$name-${seeds[0]}"); done
  ./dev troupe report "${folders[@]}" --format svg --title "loss with four stages, a step after every micro-batch" \
    --out docs/explanation/pictures/staleness-loss.svg
}

# What a run holds at its peak, less what `stale` does, in copies of one layer's parameters. With these samples a
# micro-batch's activations are more than a version, so that all peaks are at the same moment.
memory() {
  local preset copy=3409920  # Bytes: 4 x 852,480 numbers, of a layer of width 256.
  for preset in stale msnag ws msnag_ws ws_ga ws_msnag_ga; do
    train stale "memory-$preset" "staleness.preset=$preset" model.width=256 model.heads=1 model.kv_heads=1 model.ffn=768 \
      model.context=32 train.steps=8 optimizer.schedule.warmup_steps=2 optimizer.schedule.total_steps=8
    echo "$preset $(last "memory-$preset" step memory)"
  done | awk -v copy="$copy" '
    NR == 1 { stale = $2; print "| preset | measured |"; print "|---|---|"; next }
    { printf "| `%s` | %.1f |\n", $1, ($2 - stale) / copy }'
}

case ${1:-all} in
  losses) losses ;;
  memory) memory ;;
  all) losses; memory ;;
  *) echo "study-staleness.sh: '$1' is neither 'losses' nor 'memory'" >&2; exit 2 ;;
esac
