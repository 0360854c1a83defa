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
       .help = "The order of the passes: a name that `troupe schedule --list` shows, a file, or "
               "\"auto\"."},
      {.name = "pipeline.stages",
       .type = Type::stages,
       .fallback = "auto",
       .least = 1,
       .most = most_stages,
       .half = shape,
       .help =
           "Pieces of consecutive layers: how many, \"auto\", or boundaries such as [0, 3, 6]."},
      {.name = "pipeline.chunks",
       .fallback = 1,
       .least = 1,
       .most = 64,
       .half = shape,
       .help = "Stages on one device: a pipeline has stages / chunks devices."},
      {.name = "pipeline.replicas",
       .type = Type::count_or_auto,
       .fallback = 1,
       .least = 1,
       .most = most_stages,
       .half = shape,
       .help =
           "Copies of the pipeline that share the samples of a step; \"auto\" is as many as the "
           "devices that are there go best with, of those that divide the groups."},
      {.name = "pipeline.tensor",
       .fallback = 1,
       .least = 1,
       .most = 64,
       .half = recipe,
       .help = "Shards of each layer. This version does not cut layers: training and plans take 1 "
               "alone."},
      {.name = "pipeline.recompute",
       .type = Type::switches,
       .fallback = false,
       .half = shape,
       .help = "Whether a stage keeps its input alone and computes the rest again: less memory, "
               "more time. A list says it of each stage, and wants the boundaries of stages."},
      {.name = "pipeline.memory",
       .type = Type::bytes_or_auto,
       .fallback = "auto",
       .least = 0x1p20,
       .most = 0x1p60,
       .help = "What a device may use of its memory; \"auto\" is all of it."},
      {.name = "parallel.groups",
       .type = Type::count_or_auto,
       .fallback = "auto",
       .least = 1,
       .most = most_stages,
       .half = recipe,
       .help = "Groups of consecutive micro-batches whose gradients are summed first: as many "
               "replicas are possible. \"auto\" is the largest divisor of their number up to 8."},
      {.name = "parallel.exchange",
       .type = Type::choice,
       .fallback = "all_to_all",
       .choices = {"all_to_all", "server"},
       .help = "Where the gradients of replicas come together: each replica has a part of every "
               "stage and keeps the optimizer's state of that part alone, or the first replica "
               "has all. Changes no number."},
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
       .help = "With how few nodes the run goes on, and how many it takes: \"1:8\"."},
      {.name = "elastic.copies",
       .fallback = 2,
       .least = 1,
       .most = 8,
       .change = live,
       .help = "Of every shard in the memory of different hosts, the owner's included; 1 is disk "
               "only."},
      {.name = "checkpoint.dir",
       .type = Type::text,
       .fallback = "runs/{name}/checkpoints",
       .help = "Where checkpoints are kept; {name} is the run's name."},
      {.name = "checkpoint.every",
       .type = Type::interval,
       .fallback = "5m",
       .change = live,
       .help = "How often one is saved: \"100 steps\", or a duration."},
      {.name = "checkpoint.keep",
       .fallback = 3,
       .least = 1,
       .most = 1e6,
       .help = "How many of the newest stay."},
      {.name = "train.steps",
       .presence = Key::Presence::required,
       .least = 1,
       .most = most_steps,
       .change = live,
       .help = "After how many optimizer steps the run is done."},
      {.name = "train.eval_every",
       .least = 1,
       .most = most_steps,
       .change = live,
       .help = "Steps between two evaluations on data.validate; without it one at the end."},
      {.name = "train.eval_batches",
       .fallback = 8,
       .least = 1,
       .change = live,
       .help = "How many batches an evaluation takes, the same ones each time."},
      {.name = "train.export",
       .type = Type::text,
       .help = "A .safetensors file for the final weights, written when the run ends well."},
      {.name = "train.device",
       .type = Type::choice,
       .fallback = "cpu",
       .choices = {"cpu", "cuda"},
       .help = "What computes: the cores, or GPUs, one for each device of the plan, in turn. Both "
               "give the same bits in fp32."},
      {.name = "train.graph_rows",
       .fallback = 4096,
       .least = 0,
       .help =
           "On GPUs: a stage's pass over at most so many tokens, or samples, or lines of images, "
           "is played as a CUDA graph when it comes again, by one launch in place of hundreds; so "
           "is the optimizer's step behind such passes. No number changes. 0: never."},
      {.name = "train.threads",
       .type = Type::count_or_auto,
       .fallback = "auto",
       .least = 1,
       .most = 4096,
       .help = "Threads that compute on a CPU device; \"auto\" is its share of the cores."},
      {.name = "log.every",
       .fallback = 10,
       .least = 1,
       .change = live,
       .help = "Steps between two lines where the output is no terminal."},
      {.name = "log.staleness",
       .type = Type::boolean,
       .fallback = true,
       .help = "Whether the events of an asynchronous run's steps tell how late gradients were: "
               "costs a look at all weights for each late micro-batch."},
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
           "A pause between a node's heartbeats that never counts as silence. A head takes the "
           "longest of its runs that are under way."),
      wait("reconnect_patience", "1s",
           "For a node whose connection closed without a word. A head takes the longest of its "
           "runs that are under way."),
      wait("stuck_floor", "2s", "A time for which no action counts as stuck."),
      wait("start_patience", "30s", "For the first nodes to come."),
      wait("gather_patience", "5s",
           "For nodes to come back: after the head started again, and before a run is planned anew "
           "for those that are left."),
      wait("prepare_patience", "10s", "For a node to make ready for a new plan."),
      wait("load_patience", "10m", "For the nodes of a new plan to have the weights."),
      wait("head_patience", "10m",
           "For a head that is gone, while nodes train on, or a supervisor that is stuck."),
      wait("suspend_patience", "24h",
           "For nodes, when fewer are there than elastic.nodes asks for."),
      wait("save_patience", "60s", "For a checkpoint to reach the disk."),
      {.name = "limits.futile_epochs",
       .fallback = 5,
       .least = 1,
       .most = 1e6,
       .help =
           "Attempts in a row without a new step, after which each next one waits longer. After "
           "limits.strikes more of them the run ends."},
      {.name = "limits.strikes",
       .fallback = 3,
       .least = 1,
       .most = 1e6,
       .help =
           "Failures within strike_window that a run survives, but for those of nodes it can do "
           "without. A node on which more processes end gets no part for a while."},
      wait("strike_window", "10m", "The time in which failures are counted."),
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
