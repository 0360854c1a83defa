#!/usr/bin/env bash
# Gives rendered jobs to a real Slurm: a controller and three machines, each with a network
# namespace and a host name of its own. A job that is requeued by hand, preempted and out of time
# must lose no step, and all weights must equal those of a run in one process.
#
#     slurm.sh TROUPE        exits with 77 if there is no Slurm, or no namespaces can be made
set -euo pipefail
for program in slurmctld slurmd sbatch munged; do
  command -v "$program" >/dev/null || { echo "skipped: there is no $program (apt install slurmctld slurmd slurm-client munge)"; exit 77; }
done
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
# shellcheck source=tests/hosts/inside.sh
. "$here/inside.sh"
[ "$(cat /proc/self/setgroups)" = allow ] || { echo "skipped: slurmd changes groups, which root of a user namespace may not"; exit 77; }

machines=(control h1 h2 h3)
# shellcheck source=tests/hosts/bridge.sh
. "$here/bridge.sh"
for machine in "${machines[@]}"; do echo "${address[$machine]} $machine"; done >hosts
echo "127.0.0.1 localhost" >>hosts
mount --bind hosts /etc/hosts


head -c 1024 /dev/urandom >munge.key
chmod 400 munge.key
munged --force --key-file=/mnt/munge.key --socket=/mnt/munge.socket --pid-file=/mnt/munge.pid --log-file=/mnt/munge.log \
  --seed-file=/mnt/munge.seed 2>munged.log || fail "munged does not start"

mkdir slurm slurm/state
# A later Slurm looks for control groups unless it is told that there are none.
without_groups=
case $(slurmctld -V) in *" "2[3-9].*) without_groups=CgroupPlugin=disabled ;; esac
echo "$without_groups" >slurm/cgroup.conf
echo "NodeName=h[1-3] Name=gpu Type=toy Count=1 File=/dev/null" >slurm/gres.conf
cat >slurm/slurm.conf <<CONF
ClusterName=test
SlurmctldHost=control(${address[control]})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=/mnt/munge.socket
StateSaveLocation=/mnt/slurm/state
SlurmdSpoolDir=/mnt/slurm/%n
SlurmctldPidFile=/mnt/slurm/control.pid
SlurmdPidFile=/mnt/slurm/%n.pid
SlurmctldLogFile=/mnt/slurm/control.log
SlurmdLogFile=/mnt/slurm/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait=30
GresTypes=gpu
$(for machine in h1 h2 h3; do echo "NodeName=$machine NodeAddr=${address[$machine]} CPUs=2 RealMemory=1000 Gres=gpu:toy:1 Feature=fast State=UNKNOWN"; done)
PartitionName=plain Nodes=h[1-3] Default=YES PriorityTier=1 GraceTime=0
PartitionName=polite Nodes=h[1-3] PriorityTier=1 GraceTime=600
PartitionName=urgent Nodes=h[1-3] PriorityTier=2
CONF
export SLURM_CONF=/mnt/slurm/slurm.conf
on control slurmctld -D >slurmctld.log 2>&1 &
for machine in h1 h2 h3; do
  mkdir "slurm/$machine"
  on "$machine" slurmd -D -N "$machine" >"slurmd-$machine.log" 2>&1 &
done

# until_true SECONDS TEXT COMMAND...: waits until a command succeeds.
until_true() {
  local end=$((SECONDS + $1)) text=$2
  shift 2
  until "$@"; do
    [ "$SECONDS" -le "$end" ] || fail "$text"
    sleep 0.1
  done
}
idle_machines() { [ "$(on control sinfo --noheader --partition=plain --states=idle --format=%D 2>/dev/null)" = 3 ]; }
until_true 60 "not all machines are there: $(on control sinfo 2>&1)" idle_machines

# Tells whether `scontrol show job` prints all these texts.
job_is() { # JOB TEXT...
  local said text
  said=$(on control scontrol show job "$1") || return 1
  for text in "${@:2}"; do
    case $said in *"$text"*) ;; *) return 1 ;; esac
  done
}
submit() { # FOLDER WORDS_OF_SBATCH...
  (cd "$1" && on control sbatch --parsable "${@:2}")
}

# A run to its end.
mkdir whole
troupe render slurm run.toml --nodes 2 --cores 2 --set log.every=100 >whole/job.sh
job=$(submit whole job.sh)
until_true 120 "the job has not ended well: $(on control scontrol show job "$job")" job_is "$job" JobState=COMPLETED ExitCode=0:0
[ "$(digest whole)" = "$wanted_digest" ] || fail "other weights: $(digest whole), wanted $wanted_digest"
if grep -q 'CANCELLED\|forcing\|Killed' whole/*.log; then fail "a job that ends well reads like a failure"; fi
[ -z "$(find whole -name '*.key')" ] || fail "keys were left behind"

# A job without nodes fails, and is not put back.
node_daemons() { pgrep -f 'troupe node' -P "$(pgrep -d, slurmstepd)"; }
mkdir failing
troupe render slurm run.toml --nodes 2 --cores 2 --set train.steps=1000000 >failing/job.sh
job=$(submit failing job.sh)
until_true 60 "the run does not begin" grep -qs '^step 10 ' failing/small-"$job".log
node_daemons | xargs kill -KILL
until_true 60 "the job has not failed: $(on control scontrol show job "$job")" job_is "$job" JobState=FAILED
grep -q '^error: all nodes have ended' failing/*.log || fail "the job does not say why it failed"

# Slurm reads values that need quotes as they are.
mkdir quoted
troupe render slurm run.toml --nodes 2 --constraint fast --account 'my "lab" \ #1' --line '--comment="a # b"' >quoted/job.sh
job=$(submit quoted --hold job.sh)
job_is "$job" 'Account=my "lab" \ #1 QOS' Features=fast 'Comment=a # b ' || fail "it reads other values: $(on control scontrol show job "$job")"
troupe render slurm run.toml --nodes 2 --set train.device=cuda >quoted/gpu.sh
gpus=$(submit quoted --hold gpu.sh)
job_is "$gpus" TresPerNode=gres gpu:1 || fail "no GPU is asked for: $(on control scontrol show job "$gpus")"
on control scancel "$job" "$gpus"

# Interruptions of one run that only they save.
mkdir long
events=long/runs/small/events.jsonl
many=(--set train.steps=1000000 --set log.every=10 --set 'checkpoint.every=1000000 steps')
job_file() { troupe render slurm run.toml --nodes 2 --cores 2 "${many[@]}" "$@" >long/job.sh; }
steps() { [ ! -f "$events" ] || sed -n 's/.*"type":"step".*"step":\([0-9]*\).*/\1/p' "$events"; }
last_saved() { sed -n 's/.*"type":"checkpoint.saved".*"step":\([0-9]*\).*/\1/p' "$events" | tail -n 1; }
is_beyond() { [ "$(steps | tail -n 1)" -gt "$1" ] 2>/dev/null; }
update() { on control scontrol update "JobId=$job" "$@" 2>>scontrol.log; }
# Slurm refuses changes of a job that is about to end.
change() { until_true 30 "Slurm does not change job $job: $*" update "$@"; }
begins() {
  # Slurm lets a job that is put back wait for two minutes.
  update StartTime=now || true
  job_is "$job" JobState=RUNNING
}
trains() { # TIMES_PUT_BACK: waits until the job runs for the next time, and the run makes steps
  local before
  before=$(steps | tail -n 1)
  until_true 60 "job $job is not put back: $(on control scontrol show job "$job")" job_is "$job" "Restarts=$1"
  until_true 60 "job $job does not begin" begins
  until_true 60 "the run does not go on" is_beyond $((${before:-0} + 100))
}
has_ended() { job_is "$job" JobState=PENDING || job_is "$job" JobState=CANCELLED; }
has_saved() { # HOW SECONDS: waits until the job's processes have ended, and looks at what is saved
  until_true "$2" "$1: job $job still runs" has_ended
  [ "$(last_saved)" -ge "$(steps | tail -n 1)" ] || fail "$1: step $(steps | tail -n 1) was not saved, but $(last_saved)"
  [ -z "$(find long -name '*.key')" ] || fail "$1: keys were left behind"
}

job_file --grace 50
job=$(submit long job.sh)
trains 0
on control scontrol requeue "$job"
has_saved "requeued by hand" 30

trains 1
preempt() {
  urgent=$(submit long --partition=urgent --nodes=3 --exclusive --wrap=true)
  has_saved "$1" 30
  until_true 60 "the urgent job has not run" job_is "$urgent" JobState=COMPLETED
}
preempt "preempted at once"

# The job ends when its last node has left, long before the grace time does. One node has failed.
change Partition=polite
trains 2
node_daemons | tail -n 1 | xargs kill -KILL
until_true 30 "the run does not lose its node" grep -q 'is lost' long/small-"$job".log
until_true 60 "the run does not go on without the node" is_beyond $(($(steps | tail -n 1) + 10))
preempt "preempted with grace"

change Partition=plain
trains 3
# Slurm gives notice up to a minute before the 50 s of grace, since it looks twice a minute.
change TimeLimit=1
has_saved "out of time" 120

trains 4
on control scancel "$job"
has_saved "cancelled" 30
job_is "$job" JobState=CANCELLED || fail "a cancelled job was put back: $(on control scontrol show job "$job")"
if grep 'pending execution' long/*.log; then fail "the job was put back twice"; fi

# The weights are those of one process that was not interrupted.
many=(--set "train.steps=$(($(last_saved) + 100))" --set log.every=100)
job_file
job=$(submit long job.sh)
until_true 120 "the last job has not ended well: $(on control scontrol show job "$job")" job_is "$job" JobState=COMPLETED ExitCode=0:0
[ "$(last_saved)" = "$(steps | tail -n 1)" ] || fail "the last step was not saved"
mkdir reference
(cd reference && troupe train ../run.toml -q "${many[@]}") || fail "the long run in one process"
[ "$(digest long)" = "$(digest reference)" ] || fail "other weights: $(digest long), wanted $(digest reference)"
echo "Slurm: $(digest long) after 5 interruptions in $(last_saved) steps"
