#include "config/keys.h"

namespace troupe::config {
namespace {

using enum Half;

constexpr auto live = Change::live;
constexpr double most_stages = 4096;

std::vector<Key> pipeline_keys() {
  return {
      {.name = "pipeline.schedule",
       .type = Type::text,
       .fallback = "1f1b",
       .half = shape,
       .help = "Pipeline schedule: a name from `troupe schedule --list`, a file, or \"auto\"."},
      {.name = "pipeline.stages",
       .type = Type::stages,
       .fallback = "auto",
       .least = 1,
       .most = most_stages,
       .half = shape,
       .help = "Pipeline stages (groups of consecutive layers): their number, \"auto\", or layer "
               "boundaries such as [0, 3, 6]."},
      {.name = "pipeline.chunks",
       .fallback = 1,
       .least = 1,
       .most = 64,
       .half = shape,
       .help = "Stages per device: a pipeline uses stages / chunks devices."},
      {.name = "pipeline.replicas",
       .type = Type::count_or_auto,
       .fallback = 1,
       .least = 1,
       .most = most_stages,
       .half = shape,
       .help = "Data-parallel copies of the pipeline. \"auto\" picks the fastest number for the "
               "available devices among the divisors of parallel.groups."},
      {.name = "pipeline.tensor",
       .fallback = 1,
       .least = 1,
       .most = 64,
       .half = recipe,
       .help = "Tensor-parallel shards of each layer. This version supports only 1."},
      {.name = "pipeline.recompute",
       .type = Type::switches,
       .fallback = false,
       .half = shape,
       .help = "Activation checkpointing: keep only a stage's input and recompute its activations "
               "in the backward pass. This takes less memory and more time. A list has one value "
               "per stage; it requires pipeline.stages as boundaries."},
      {.name = "pipeline.memory",
       .type = Type::bytes_or_auto,
       .fallback = "auto",
       .least = 0x1p20,
       .most = 0x1p60,
       .help = "Memory limit per device; \"auto\" is all of its memory."},
      {.name = "parallel.groups",
       .type = Type::count_or_auto,
       .fallback = "auto",
       .least = 1,
       .most = most_stages,
       .half = recipe,
       .help = "Number of groups of consecutive micro-batches whose gradients are summed first. It "
               "is the largest possible number of replicas. \"auto\" is the largest divisor, up to "
               "8, of the number of micro-batches in a step."},
      {.name = "parallel.exchange",
       .type = Type::choice,
       .fallback = "all_to_all",
       .choices = {"all_to_all", "server"},
       .help = "Where replicas reduce gradients: all_to_all shards each stage's gradients and "
               "optimizer state over the replicas (as ZeRO does); server reduces at the first "
               "replica. Results do not depend on it."},
  };
}

std::vector<Key> run_keys() {
  return {
      {.name = "elastic.nodes",
       .type = Type::range,
       .fallback = "1:4096",
       .least = 1,
       .most = most_stages,
       .change = live,
       .help = "Fewest and most nodes of the run: \"1:8\". With fewer nodes it waits; it never "
               "uses more."},
      {.name = "elastic.copies",
       .fallback = 2,
       .least = 1,
       .most = 8,
       .change = live,
       .help = "In-memory copies of each shard on different hosts, the owner's included. With 1 "
               "only checkpoints protect a shard."},
      {.name = "checkpoint.dir",
       .type = Type::text,
       .fallback = "runs/{name}/checkpoints",
       .help = "Checkpoint folder; {name} is the run's name."},
      {.name = "checkpoint.every",
       .type = Type::interval,
       .fallback = "5m",
       .change = live,
       .help = "Checkpoint interval: \"100 steps\", or a duration."},
      {.name = "checkpoint.keep",
       .fallback = 3,
       .least = 1,
       .most = 1e6,
       .help = "Number of newest checkpoints to keep."},
      {.name = "train.steps",
       .presence = Key::Presence::required,
       .least = 1,
       .most = most_steps,
       .change = live,
       .help = "Optimizer steps to train."},
      {.name = "train.eval_every",
       .least = 1,
       .most = most_steps,
       .change = live,
       .help =
           "Steps between two evaluations on data.validate. Default: one evaluation at the end."},
      {.name = "train.eval_batches",
       .fallback = 8,
       .least = 1,
       .change = live,
       .help = "Batches per evaluation; every evaluation uses the same ones."},
      {.name = "train.export",
       .type = Type::text,
       .help = "A .safetensors file for the final weights, written when the run completes."},
      {.name = "train.device",
       .type = Type::choice,
       .fallback = "cpu",
       .choices = {"cpu", "cuda"},
       .help = "Compute device: the CPU cores, or one GPU for each device of the plan. In fp32 "
               "both give the same bits."},
      {.name = "train.graph_rows",
       .fallback = 4096,
       .least = 0,
       .help =
           "On GPUs: largest pass of a stage (in tokens, samples or image rows) that is captured "
           "as a CUDA graph, together with the optimizer step after it. A replay takes one kernel "
           "launch instead of hundreds. Results do not change. 0 disables graphs."},
      {.name = "train.threads",
       .type = Type::count_or_auto,
       .fallback = "auto",
       .least = 1,
       .most = 4096,
       .help = "Compute threads per CPU device; \"auto\" is the device's share of the cores."},
      {.name = "log.every",
       .fallback = 10,
       .least = 1,
       .change = live,
       .help = "Steps between two progress lines if the output is not a terminal."},
      {.name = "log.staleness",
       .type = Type::boolean,
       .fallback = true,
       .help = "Record gradient delays in the step events of asynchronous runs. This reads all "
               "weights once per delayed micro-batch."},
  };
}

std::vector<Key> limit_keys() {
  const auto wait = [](std::string name, Value fallback, std::string_view help) {
    return Key{.name = "limits." + name,
               .type = Type::duration,
               .fallback = std::move(fallback),
               .least = 1e6,
               .most = 3.2e18,
               .help = help};
  };
  return {
      wait("silence_floor", "300ms",
           "Lower bound for the heartbeat timeout of a node. A head uses the longest value among "
           "its active runs."),
      wait("reconnect_patience", "1s",
           "How long the head waits for a node to reconnect after its connection closed without "
           "notice. A head uses the longest value among its active runs."),
      wait("stuck_floor", "2s",
           "Lower bound for the timeout after which an action counts as stuck."),
      wait("start_patience", "30s", "How long a new run waits for its first nodes."),
      wait("gather_patience", "5s",
           "How long a run waits for nodes to come back, after a restart of the head and before a "
           "new plan without the missing nodes."),
      wait("prepare_patience", "10s", "How long a node may take to prepare a new plan."),
      wait("load_patience", "10m",
           "How long the nodes of a new plan may take to load the weights."),
      wait("head_patience", "10m",
           "How long nodes train on without a head, or wait for a stuck supervisor."),
      wait("suspend_patience", "24h",
           "How long a run waits for nodes if fewer are connected than elastic.nodes requires."),
      wait("save_patience", "60s", "How long saving a checkpoint may take."),
      {.name = "limits.futile_epochs",
       .fallback = 5,
       .least = 1,
       .most = 1e6,
       .help = "Consecutive attempts without a completed step before each further attempt waits "
               "longer. After limits.strikes more attempts the run fails."},
      {.name = "limits.strikes",
       .fallback = 3,
       .least = 1,
       .most = 1e6,
       .help =
           "Failures within strike_window that a run tolerates, not counting lost nodes that it "
           "can replace. A node with more process failures than this gets no work for a while."},
      wait("strike_window", "10m", "Time window in which failures are counted."),
  };
}

}  // namespace

std::vector<Key> plan_keys() {
  std::vector<Key> keys = pipeline_keys();
  for (auto part : {run_keys, limit_keys})
    for (auto& key : part()) keys.push_back(std::move(key));
  return keys;
}

}  // namespace troupe::config
