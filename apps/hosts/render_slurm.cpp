#include "apps/hosts/render.h"
#include "apps/hosts/ssh.h"

namespace troupe::apps {
namespace {

// Inserted verbatim: the job's shell evaluates it.
constexpr const char* keys_part = R"sh(
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
)sh";

constexpr const char* head_part = R"sh(
# A port that other jobs on this machine do not take.
port=$((20000 + SLURM_JOB_ID % 20000 * 2))
TROUPE_HEAD=$(hostname):$port
export TROUPE_HEAD
# The state stays beside the run: a head of a later start has a higher term, and two heads at once
# are refused.
"$troupe" head --listen "0.0.0.0:$port" --events "0.0.0.0:$((port + 1))"@HEAD@ \
  --keys "$keys/head.key" --allow "$keys/hosts.allow" --allow-path / --state "@STATE@" --only-submitted &
head=$!

# A machine that fails takes its node with it, and nothing else.
TROUPE_KEYS=$keys/node.key srun --no-kill --kill-on-bad-exit=0 --wait=0@SRUN@ "$troupe" node@NODE@ &
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
)sh";

/// Quotes a value for a line that sbatch reads. There a backslash also escapes within quotes, and
/// '#' begins a comment.
std::string sbatch_quoted(const std::string& value) {
  if (shell_quoted(value) == value) return value;
  std::string quoted = "\"";
  for (const char c : value) quoted += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string render_slurm(const SlurmOrder& order) {
  const JobOrder& job = order.job;
  const auto option = [](const std::string& name, const std::string& value) {
    return value.empty() ? "" : "#SBATCH --" + name + "=" + sbatch_quoted(value) + "\n";
  };
  std::string text = "#!/usr/bin/env bash\n";
  text += "# The run " + job.name + " on " + std::to_string(job.nodes) +
          " machines. From a folder that all of them share: sbatch THIS\n";
  text += option("job-name", job.name);
  text += option("output", job.name + "-%j.log");
  text += option("open-mode", "append");
  text += option("nodes", std::to_string(job.nodes));
  text += option("ntasks-per-node", "1");
  text +=
      job.cores > 0 ? option("cpus-per-task", std::to_string(job.cores)) : "#SBATCH --exclusive\n";
  text += option("mem", job.memory);
  text += option("time", order.time);
  if (job.gpus > 0) text += option("gres", "gpu:" + std::to_string(job.gpus));
  text += option("partition", order.partition);
  text += option("account", order.account);
  text += option("qos", order.qos);
  text += option("constraint", order.constraint);
  text += "#SBATCH --requeue\n#SBATCH --no-kill\n";
  text += option("signal", "B:TERM@" + std::to_string(job.grace.count()));
  // Last, since sbatch obeys the last of equal options.
  for (const auto& line : order.lines) text += "#SBATCH " + line + "\n";
  text += "set -euo pipefail\n";
  text += "troupe=" + shell_quoted(job.program) + "\n";
  text += keys_part;
  text += "cat >\"$keys/run.json\" <<'RUN'\n" + job.run + "RUN\n";
  const std::string cores = std::to_string(job.cores);
  // Other users of a machine that jobs share could read the page.
  const std::string page = job.cores > 0 ? " --http off" : "";
  return text + filled(head_part, {{"@HEAD@", page},
                                   {"@STATE@", "runs/.troupe-" + job.name},
                                   // srun does not inherit --cpus-per-task from sbatch.
                                   {"@SRUN@", job.cores > 0 ? " --cpus-per-task=" + cores : ""},
                                   {"@NODE@", job.cores > 0 ? " --cores " + cores : ""}});
}

}  // namespace troupe::apps
