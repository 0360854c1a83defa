#!/usr/bin/env bash
# Cuts the paths of a run over three machines: between the head and a node, and between the two nodes, both ways and each
# way alone. A machine is a network namespace with a name of its own; a bridge joins the three. A path is cut by the
# neighbour table: frames go to an address that nobody has, so that packets are lost without an error, as with a broken
# cable. After each cut the weights must be those of the run in one process.
#
#     cuts.sh TROUPE        exits with 77 where namespaces cannot be made
#
# Then a run goes over paths of 50 ms that lose 1 % of their packets (slow_hub.py).
#
# TROUPE_CUT_SECONDS: how long each cut lasts, such as "5 30 120"; else 5.
set -euo pipefail
# shellcheck source=tests/hosts/inside.sh
. "$(dirname "${BASH_SOURCE[0]}")/inside.sh"

ip link add bridge type bridge 2>why || { echo "skipped: there is no bridge here: $(cat why)"; exit 77; }
ip link set bridge up

declare -A address=([head]=10.77.0.1 [alpha]=10.77.0.2 [beta]=10.77.0.3)
machine() {
  local ready
  exec {ready}< <(exec unshare --net --uts sh -c "hostname $1 && ip link set lo up && echo && exec sleep infinity")
  echo $! >"$1.pid"
  read -r -u "$ready" || fail "there is no machine $1"
  ip link add "to-$1" type veth peer name cable netns "$(cat "$1.pid")"
  ip link set "to-$1" master bridge up
  on "$1" ip address add "${address[$1]}/24" dev cable
  on "$1" ip link set cable up
}
on() { nsenter --net --uts --target "$(cat "/mnt/$1.pid")" "${@:2}"; }
for one in head alpha beta; do machine "$one"; done

# Nothing that FROM sends comes to TO any more.
cut_way() { on "$1" ip neigh replace "${address[$2]}" lladdr 02:00:00:00:00:99 dev cable nud permanent; }
mend_way() { on "$1" ip neigh del "${address[$2]}" dev cable; }

troupe keys new head >/dev/null
for host in alpha beta; do troupe keys new "$host" >>hosts.allow; done
troupe keys new me --roles operator >>hosts.allow
chmod 600 hosts.allow
TROUPE_HEAD_KEY=$(sed -n 's/^public //p' head.key)
export TROUPE_HEAD_KEY TROUPE_HEAD=10.77.0.1:4700

# Ends each of them by its id.
declare -a started=()
start() { # MACHINE LOG COMMAND
  local machine=$1 log=$2
  shift 2
  nsenter --net --uts --target "$(cat "/mnt/$machine.pid")" "$@" >"$log" 2>&1 &
  started+=($!)
}
start head head.log troupe head --listen 10.77.0.1:4700 --events 10.77.0.1:4701 --keys head.key --allow hosts.allow
for node in alpha beta; do start "$node" "$node.log" troupe node --name "$node" --keys "$node.key" --cores 1; done
wait_for() { # TEXT FILE SECONDS
  local end=$((SECONDS + $3))
  until grep -qs -- "$1" "$2"; do
    [ "$SECONDS" -le "$end" ] || fail "$2 does not say '$1'"
    sleep 0.05
  done
}
for node in alpha beta; do wait_for "joined" "$node.log" 20; done

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
  # With one node less.
  run "fewer-$length" "$length" 'alpha:beta beta:alpha' --set elastic.nodes=1:2
done

# A path of 50 ms that loses 1 % of its packets, in place of the bridge.
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

for process in "${started[@]}"; do kill -TERM "$process"; done
for process in "${started[@]}"; do wait "$process" || fail "a process ended with $?"; done
echo "all weights are $wanted_digest"
