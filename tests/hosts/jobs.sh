#!/usr/bin/env bash
# Acts as Slurm and Kubernetes for the output of `troupe render`: starts the run, gives notice,
# waits for the save and starts it again. The weights must equal those of an uninterrupted run.
#
#     jobs.sh TROUPE        exits with 77 if namespaces cannot be made
set -euo pipefail
# shellcheck source=tests/hosts/inside.sh
. "$(dirname "${BASH_SOURCE[0]}")/inside.sh"

# twice FOLDER COMMAND...: runs a job there until step 10, gives it notice, and runs it again.
twice() {
  local folder=$1 code=0 job
  shift
  (cd "$folder" && exec "$@") >"$folder/first.log" 2>&1 &
  job=$!
  # Not a pipe, since writing to a pipe without a reader fails.
  grep -q -m 1 '^step 10 ' < <(timeout 60 tail -n +1 -s 0.05 -f "$folder/first.log") || fail "$folder: no step was seen"
  kill -TERM "$job"
  wait "$job" || code=$?
  [ "$code" = 75 ] || fail "$folder: with notice it ended with $code, wanted 75"
  (cd "$folder" && "$@") >"$folder/second.log" 2>&1 || fail "$folder: started again it ended with $?"
  if grep -q '^step 10 ' "$folder/second.log"; then fail "$folder: it began anew"; fi
  [ "$(digest "$folder")" = "$wanted_digest" ] || fail "$folder: other weights: $(digest "$folder"), wanted $wanted_digest"
}

mkdir slurm
cat >bin/srun <<'SRUN'
#!/bin/sh
# Records that it was asked to end. The real srun then prints that it cancels its step.
while [ "${1#-}" != "$1" ]; do shift; done
"$@" &
node=$!
trap 'echo cancelled >>srun.log; kill -TERM "$node"' TERM
while kill -0 "$node" 2>/dev/null; do
  wait "$node"
  code=$?
done
echo "code $code" >>srun.log
exit "$code"
SRUN
cat >bin/scontrol <<'SCONTROL'
#!/bin/sh
echo "$@" >>requeued
find . -name '*.key' | wc -l >keys-at-requeue
SCONTROL
cat >bin/squeue <<'SQUEUE'
#!/bin/sh
echo RUNNING:None
SQUEUE
cat >bin/hostname <<'HOSTNAME'
#!/bin/sh
echo 127.0.0.1
HOSTNAME
cat >bin/deaf <<'DEAF'
#!/bin/sh
# A client that a head did not tell of its end: it waits for the head.
[ "$1" = submit ] || exec troupe "$@"
troupe "$@" && exit
exec tail -f /dev/null
DEAF
chmod +x bin/*
troupe render slurm run.toml --nodes 1 --program deaf >slurm/job.sh
export SLURM_JOB_ID=4711
twice slurm bash job.sh
# After the notice the nodes are cancelled; at the end of the run they end by themselves.
[ "$(cat slurm/srun.log)" = "cancelled
code 0
code 0" ] || fail "srun: $(cat slurm/srun.log)"
[ "$(cat slurm/keys-at-requeue)" = 0 ] || fail "the keys were there when the job was put back"
[ -f slurm/runs/.troupe-small/lock ] || fail "the head's state is not beside the run"
grep -qx "requeue 4711" slurm/requeued || fail "the job was not put back into the queue"
[ -z "$(find slurm -name '*.key')" ] || fail "keys were left behind"

# Runs the script of the leading pod, with the paths of the pod, and a node beside it.
troupe render k8s run.toml --flavour jobset >job.yaml
mkdir pod keys
(
  cd keys
  troupe keys new head >/dev/null
  troupe keys new node >hosts.allow
  troupe keys new me --roles operator >>hosts.allow
  chmod 600 hosts.allow
)
/usr/bin/python3 - <<'READ'
import yaml
for thing in yaml.safe_load_all(open("job.yaml")):
    if thing and thing["kind"] == "ConfigMap":
        for name, text in thing["data"].items():
            open(f"pod/{name}", "w").write(text.replace("/run/troupe/", "/mnt/pod/").replace("/keys/", "/mnt/keys/").replace("/srv/", "/mnt/pod/"))
READ
TROUPE_HEAD_KEY=$(sed -n 's/^public //p' keys/head.key)
export TROUPE_HEAD_KEY POD_IP=127.0.0.1
troupe node --head 127.0.0.1:4700 --keys keys/node.key --exit-code-on-signal 75 >node.log 2>&1 &
node=$!
# The head's probe fails before there is a head, succeeds while it leads, and says nothing.
if bash pod/healthz.sh 2>/dev/null; then fail "the probe of a head that is not there succeeds"; fi
probe() {
  grep -q -m 1 '^its page: ' < <(timeout 60 tail -n +1 -s 0.05 -F pod/second.log 2>/dev/null)
  # Kubernetes tries six times, too.
  for _ in 1 2 3 4 5 6; do
    if bash pod/healthz.sh >probe.log 2>&1; then
      echo healthy >>probe.log
      return
    fi
  done
}
probe &
probe=$!
twice pod sh lead.sh
wait "$probe" || true
[ "$(cat probe.log)" = healthy ] || fail "the probe of a head that leads: $(cat probe.log)"
# The run is done, so its node has ended, and the Job of the nodes is complete.
code=0
wait "$node" || code=$?
[ "$code" = 0 ] || fail "the node of a run that is done ended with $code, wanted 0"
echo "Slurm and Kubernetes: $wanted_digest, each started twice"
