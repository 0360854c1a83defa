#!/usr/bin/env bash
# The run tiny on 3 machines. From a folder that all of them share: sbatch THIS
#SBATCH --job-name=tiny
#SBATCH --output=tiny-%j.log
#SBATCH --open-mode=append
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=16G
#SBATCH --time=2-00:00:00
#SBATCH --gres=gpu:4
#SBATCH --partition=gpu
#SBATCH --account="the \"lab\" \\ #1"
#SBATCH --qos=high
#SBATCH --constraint="a100&nvlink"
#SBATCH --requeue
#SBATCH --no-kill
#SBATCH --signal=B:TERM@90
#SBATCH --mail-type=END
set -euo pipefail
troupe=troupe

# Keys for this job alone, in a folder that nobody else reads and all its machines see.
keys=$PWD/.troupe-$SLURM_JOB_ID
rm -rf "$keys"
mkdir -m 700 "$keys"
trap 'rm -rf "$keys"' EXIT
(
  cd "$keys"
  umask 077
  "$troupe" keys new head >/dev/null
  "$troupe" keys new node >hosts.allow
  "$troupe" keys new me --roles operator >>hosts.allow
)
TROUPE_HEAD_KEY=$(sed -n 's/^public //p' "$keys/head.key")
export TROUPE_HEAD_KEY
cat >"$keys/run.json" <<'RUN'
{
  "name": "tiny"
}
RUN

# A port that other jobs on this machine do not take.
port=$((20000 + SLURM_JOB_ID % 20000 * 2))
TROUPE_HEAD=$(hostname):$port
export TROUPE_HEAD
# The state stays beside the run: a head of a later start has a higher term, and two heads at once
# are refused.
"$troupe" head --listen "0.0.0.0:$port" --events "0.0.0.0:$((port + 1))" --http off \
  --keys "$keys/head.key" --allow "$keys/hosts.allow" --allow-path / --state "runs/.troupe-tiny" --only-submitted &
head=$!

# A machine that fails takes its node with it, and nothing else.
TROUPE_KEYS=$keys/node.key srun --no-kill --kill-on-bad-exit=0 --wait=0 --cpus-per-task=8 "$troupe" node --cores 8 &
nodes=$!

# Before preemption or the end of the time: the head finishes the step and saves. Slurm itself puts
# a job back that it preempts at once, and nobody puts a cancelled job back: both are COMPLETING.
noticed=
requeue=
notice() {
  [ -z "$noticed" ] || return 0
  noticed=yes
  kill -TERM "$head" 2>/dev/null || true
  # Slurm sends SIGTERM more than once, to all processes.
  case $(trap '' TERM; squeue --noheader --jobs="$SLURM_JOB_ID" --format=%T:%r 2>/dev/null || true) in
    *:TimeLimit) requeue=yes ;;
    COMPLETING:* | CANCELLED:* | PENDING:* | REQUEUED:*) ;;
    *) requeue=yes ;;
  esac
}
trap notice TERM

# Slurm may tell the nodes that a grace time begins, and this script only when it is over.
failed=
nodes_ended() {
  local code=0
  wait "$nodes" || code=$?
  if [ "$code" = 0 ] || (trap '' TERM; scontrol show job "$SLURM_JOB_ID") | grep 'PreemptTime=[0-9]' >/dev/null; then
    notice
  else
    echo "error: all nodes have ended, srun with exit code $code" >&2
    failed=$code
    noticed=yes
    kill -TERM "$head" 2>/dev/null || true
  fi
}

TROUPE_KEYS=$keys/me.key "$troupe" submit "$keys/run.json" --wait --resume &
submit=$!
# A signal ends a wait early.
while kill -0 "$submit" 2>/dev/null; do
  if [ -z "$noticed" ]; then
    wait -n "$submit" "$nodes" || true
    kill -0 "$nodes" 2>/dev/null || [ -n "$noticed" ] || nodes_ended
  elif kill -0 "$head" 2>/dev/null; then
    wait "$head" || true
  else
    # A head may end before it has told how the run ended. This would wait for the head.
    kill -TERM "$submit" 2>/dev/null || true
    wait "$submit" || true
  fi
done
code=0
wait "$submit" || code=$?
if [ -z "$noticed" ]; then
  trap : TERM  # The run has ended: there is nothing to put back.
  # The nodes end by themselves, so that Slurm need not cancel their step. A node that joins again
  # meanwhile is asked again.
  for _ in {1..10}; do
    TROUPE_KEYS=$keys/me.key "$troupe" nodes end -q || true
    if timeout 1 tail -s 0.1 -f --pid="$nodes" /dev/null; then break; fi
  done
  kill -TERM "$head" 2>/dev/null || true
fi
wait "$head" || true
kill -TERM "$nodes" 2>/dev/null || true
wait "$nodes" || true

if [ -n "$requeue" ] && [ "$code" != 0 ]; then
  rm -rf "$keys"  # Slurm may kill this script as it puts the job back.
  scontrol requeue "$SLURM_JOB_ID"
  exit 75
fi
exit "${failed:-$code}"
