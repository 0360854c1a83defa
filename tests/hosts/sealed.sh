#!/usr/bin/env bash
# Checks that a reader of the cable between two machines sees no weights of a run. With
# --plain-tensors the reader does see them, which shows that the test can fail. The weights are
# equal in both runs. The reader looks for the last weights, which only the last steps send.
#
#     sealed.sh TROUPE        exits with 77 if namespaces cannot be made
set -euo pipefail
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
steps=60
# shellcheck source=tests/hosts/inside.sh
. "$here/inside.sh"
# shellcheck source=tests/hosts/two_machines.sh
. "$here/two_machines.sh"

export TROUPE_HEAD=10.77.0.1:4700

# Runs over both machines with these options of the head, while a reader captures the cable.
run_and_read() { # FOLDER OPTION...
  local folder=$1 head node
  mkdir "$folder"
  local nodes=() ready reader
  exec {ready}< <(cd "$folder" && exec nsenter --net --target "$(cat ../beta.pid)" python3 "$here/wire.py" capture cable wire.bytes)
  reader=$!
  read -r -u "$ready" || fail "the cable cannot be read"
  (cd "$folder" && exec nsenter --net --uts --target "$(cat ../alpha.pid)" troupe head --listen 0.0.0.0:4700 \
    --events 0.0.0.0:4701 --interface 10.77.0.1 --keys ../head.key --allow ../hosts.allow "${@:2}") >"$folder/head.log" 2>&1 &
  head=$!
  for node in alpha beta; do
    (cd "$folder" && exec nsenter --net --uts --target "$(cat ../$node.pid)" troupe node --keys "../$node.key") \
      >"$folder/$node.log" 2>&1 &
    nodes+=($!)
  done
  TROUPE_KEYS=me.key on alpha troupe submit run.toml --wait --set pipeline.stages=2 --set elastic.nodes=2:2 \
    >"$folder/submit.log" 2>&1 || fail "the run over two machines"
  for node in alpha beta; do grep -q "$node: device" "$folder/submit.log" || fail "there is no device on $node"; done
  [ "$(digest "$folder")" = "$wanted_digest" ] || fail "other weights: $(digest "$folder"), $wanted_digest in one process"
  kill -TERM "$head" "${nodes[@]}"
  wait "$head" || fail "the head ended with $?"
  kill -INT "$reader"
  read -r -u "$ready" packets || fail "the reader of the cable ended"
  exec {ready}<&-
  # The pieces of 32 bytes of the last checkpoint that were seen on the cable.
  found=$(python3 "$here/wire.py" search "$folder/wire.bytes" "$folder"/runs/small/checkpoints)
  echo "$folder: $packets, $found"
}

run_and_read sealed
[[ $found == "0 of "* ]] || fail "weights crossed the cable in the clear: $found"
run_and_read plain --plain-tensors
[[ $found != "0 of "* ]] || fail "the reader of the cable finds no weights where they are in the clear"

# Without keys, tensors leave a machine only if the user allows that.
cd plain
status=0
on alpha troupe head --listen 127.0.0.1:4700 --interface 10.77.0.1 >refused.log 2>&1 || status=$?
[ "$status" -eq 2 ] || fail "the head was not refused: it ended with $status"
grep -q -e 'leave this machine unencrypted.*--plain-tensors' refused.log || fail "the head does not say why it was refused"

mkdir ../keyless
cd ../keyless
unset TROUPE_HEAD_KEY
export TROUPE_HEAD=127.0.0.1:4700
(exec nsenter --net --uts --target "$(cat ../alpha.pid)" troupe head --listen "$TROUPE_HEAD" --events 127.0.0.1:4701) >head.log 2>&1 &
head=$!
(exec nsenter --net --uts --target "$(cat ../alpha.pid)" troupe node --interface 10.77.0.1) >node.log 2>&1 &
node=$!
on alpha troupe submit ../run.toml --wait >submit.log 2>&1 && fail "tensors left a machine in the clear, and nobody has said that they may"
grep -q 'failed: .*leave the machine in the clear.*--plain-tensors' submit.log || fail "the run does not say why it failed"
kill -TERM "$head" "$node"
wait "$head" || fail "the head ended with $?"
