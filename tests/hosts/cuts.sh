#!/usr/bin/env bash
# Cuts the paths of a run over three machines: between the head and a node, and between the two
# nodes, in both directions and in each direction alone. After each cut the weights must equal those
# of a run in one process.
#
#     cuts.sh TROUPE        exits with 77 if namespaces cannot be made
#
# Then a run uses paths with a delay of 50 ms that lose 1 % of their packets (slow_hub.py).
#
# TROUPE_CUT_SECONDS: the durations of the cuts, such as "5 30 120" (default 5).
set -euo pipefail
steps=400  # So many that a run does not end during its cut.
# shellcheck source=tests/hosts/inside.sh
. "$(dirname "${BASH_SOURCE[0]}")/inside.sh"

nodes=(alpha beta) head_words=()
# shellcheck source=tests/hosts/machines.sh
. "$(dirname "${BASH_SOURCE[0]}")/machines.sh"

milliseconds() { echo $(($(date +%s%N) / 1000000)); }
run() { # NAME SECONDS WAYS: "FROM:TO ..."; more settings
  local name=$1 length=$2 ways=$3 way noticed begun code=0 weights
  shift 3
  on head env TROUPE_KEYS=/mnt/me.key troupe submit run.toml --wait --output plain --set "name=$name" --set pipeline.stages=2 \
    --set elastic.nodes=2:2 --set 'checkpoint.every=100000 steps' "$@" >"$name.log" 2>&1 &
  local submit=$!
  wait_for '^step 100 ' "$name.log" 30
  begun=$(milliseconds)
  for way in $ways; do cut_way "${way%:*}" "${way#*:}"; done
  wait_for '^warning: ' "$name.log" 10
  noticed=$(($(milliseconds) - begun))
  [ "$noticed" -lt 5000 ] || fail "$name: the cut was noticed after $noticed ms"
  sleep "$(awk "BEGIN {print $length - $noticed / 1000}")"
  for way in $ways; do mend_way "${way%:*}" "${way#*:}"; done
  wait "$submit" || code=$?
  [ "$code" -eq 0 ] || fail "$name ended with $code"
  weights=$(sed -n 's/.*"type":"checkpoint.saved".*"weights":"\([0-9a-f]*\)".*/\1/p' "runs/$name/events.jsonl" | tail -n 1)
  [ "$weights" = "$wanted_digest" ] || fail "$name: other weights: $weights, not $wanted_digest"
  echo "$name: cut for $length s, noticed after $noticed ms, done $(($(milliseconds) - begun)) ms after the cut"
}

for length in ${TROUPE_CUT_SECONDS:-5}; do
  run "nodes-$length" "$length" 'alpha:beta beta:alpha'
  grep -q 'has lost node' "nodes-$length.log" || fail "the loss of the path between the nodes is not told"
  run "one-way-$length" "$length" 'alpha:beta'
  grep -q 'has lost node' "one-way-$length.log" || fail "the loss of one way between the nodes is not told"
  run "head-$length" "$length" 'head:alpha alpha:head'
  run "to-node-$length" "$length" 'head:alpha'
  run "from-node-$length" "$length" 'alpha:head'
  # The run has one node less.
  run "fewer-$length" "$length" 'alpha:beta beta:alpha' --set elastic.nodes=1:2
done

# Replaces the bridge by a path with a delay of 50 ms that loses 1 % of its packets.
slow() {
  local hub one code=0 wanted weights
  local -a settings=(--set train.steps=10)
  mkdir slow-one
  (cd slow-one && troupe train ../run.toml -q "${settings[@]}") || fail "the short run in one process"
  wanted=$(digest slow-one)
  for one in head alpha beta; do
    on "$one" python3 "$hub_program" --whole-frames cable
    ip link set "to-$one" nomaster
  done
  exec {ready}< <(exec python3 "$hub_program" 0.05 0.01 to-head to-alpha to-beta)
  hub=$!
  read -r -u "$ready" || fail "the slow hub does not begin"
  on head env TROUPE_KEYS=/mnt/me.key troupe submit run.toml --wait --output plain --set name=slow --set pipeline.stages=2 \
    --set elastic.nodes=2:2 "${settings[@]}" >slow.log 2>&1 || code=$?
  [ "$code" -eq 0 ] || fail "the run over slow paths ended with $code"
  weights=$(sed -n 's/.*"type":"checkpoint.saved".*"weights":"\([0-9a-f]*\)".*/\1/p' runs/slow/events.jsonl | tail -n 1)
  [ "$weights" = "$wanted" ] || fail "slow: other weights: $weights, not $wanted"
  echo "slow: 50 ms and 1 % loss, done after $SECONDS s"
  kill "$hub"
  for one in head alpha beta; do ip link set "to-$one" master bridge; done
}
hub_program=$(dirname "$(realpath "${BASH_SOURCE[0]}")")/slow_hub.py
slow

end_all
echo "all weights are $wanted_digest"
