#include "config/keys.h"

namespace troupe::config {
namespace {

using enum Half;

constexpr auto live = Change::live;
constexpr auto required = Key::Presence::required;
constexpr double most_steps = 1e12;
constexpr double most_stages = 4096;

std::vector<Key> top_keys() {
  return {
      {.name = "name", .type = Type::text,
       .help = "What the run is called, on the head and in paths; else its file's name."},
      {.name = "seed", .fallback = 1, .most = 9e15, .half = recipe,
       .help = "What all random numbers are drawn from: first weights, order of samples, dropout."},
      {.name = "exactness", .type = Type::choice, .fallback = "bits", .choices = {"bits", "samples"},
       .half = recipe,
       .help = "What no change of plan may change: every bit, or only which samples make a step."},
  };
}

std::vector<Key> data_keys() {
  return {
      {.name = "data.train", .type = Type::text, .presence = required, .half = recipe,
       .help = "Made data (\"made:markov?states=64\"), a text file, .jsonl, .bin token shards, IDX "
               "or .safetensors."},
      {.name = "data.validate", .type = Type::text,
       .help = "Data of the same kind that is never trained on; without it nothing is evaluated."},
      {.name = "data.order", .type = Type::choice, .fallback = "shuffled",
       .choices = {"shuffled", "sequential"}, .half = recipe,
       .help = "The order of samples: a function of the seed and the pass, or as they lie."},
      {.name = "batch.global", .presence = required, .least = 1, .half = recipe,
       .help = "Samples in one optimizer step; constant, whatever the cluster does."},
      {.name = "batch.micro", .type = Type::count_or_auto, .fallback = "auto", .least = 1,
       .half = recipe,
       .help = "Samples that pass through a stage at once."},
  };
}

std::vector<Key> optimizer_keys() {
  const Condition with_momentum{"optimizer.kind", {"sgd", "muon"}};
  const Condition with_betas{"optimizer.kind", {"adam", "adamw", "nadamw", "muon"}};
  constexpr std::string_view lr = "The learning rate at its height.";
  constexpr std::string_view momentum = "How much of the last update stays in the next.";
  constexpr std::string_view nesterov = "Whether the momentum looks a step ahead.";
  constexpr std::string_view decay =
      "How fast weights shrink: as part of the gradient (sgd, adam) or beside it (the others).";
  constexpr std::string_view eps = "Added to the denominator.";
  constexpr std::string_view betas =
      "How slowly the first and the second moment change; of muon: for what is no matrix.";
  const Value two_betas = Value::List{0.9, 0.999};
  return {
      {.name = "optimizer.kind", .type = Type::choice, .fallback = "adamw",
       .choices = {"sgd", "adam", "adamw", "nadamw", "muon"}, .half = recipe,
       .help = "How gradients become the next weights."},
      {.name = "optimizer.lr", .type = Type::number, .fallback = 1e-3, .most = 1e3, .half = recipe,
       .help = lr, .when = {"optimizer.kind", {"sgd", "adam", "adamw", "muon"}}},
      {.name = "optimizer.lr", .type = Type::number, .fallback = 2e-3, .most = 1e3, .half = recipe,
       .help = lr, .when = {"optimizer.kind", {"nadamw"}}},
      {.name = "optimizer.momentum", .type = Type::number, .fallback = 0.0, .most = 0.999999,
       .half = recipe, .help = momentum, .when = {"optimizer.kind", {"sgd"}}},
      {.name = "optimizer.momentum", .type = Type::number, .fallback = 0.95, .most = 0.999999,
       .half = recipe, .help = momentum, .when = {"optimizer.kind", {"muon"}}},
      {.name = "optimizer.nesterov", .type = Type::boolean, .fallback = false, .half = recipe,
       .help = nesterov, .when = {"optimizer.kind", {"sgd"}}},
      {.name = "optimizer.nesterov", .type = Type::boolean, .fallback = true, .half = recipe,
       .help = nesterov, .when = {"optimizer.kind", {"muon"}}},
      {.name = "optimizer.betas", .type = Type::numbers, .fallback = two_betas, .most = 0.999999,
       .length = 2, .half = recipe, .help = betas, .when = with_betas},
      {.name = "optimizer.eps", .type = Type::number, .fallback = 1e-8, .most = 1, .half = recipe,
       .help = eps, .when = {"optimizer.kind", {"adam", "adamw", "nadamw"}}},
      {.name = "optimizer.eps", .type = Type::number, .fallback = 1e-7, .most = 1, .half = recipe,
       .help = eps, .when = {"optimizer.kind", {"muon"}}},
      {.name = "optimizer.weight_decay", .type = Type::number, .fallback = 0.0, .most = 1e3,
       .half = recipe, .help = decay, .when = {"optimizer.kind", {"sgd", "adam", "nadamw"}}},
      {.name = "optimizer.weight_decay", .type = Type::number, .fallback = 0.01, .most = 1e3,
       .half = recipe, .help = decay, .when = {"optimizer.kind", {"adamw"}}},
      {.name = "optimizer.weight_decay", .type = Type::number, .fallback = 0.1, .most = 1e3,
       .half = recipe, .help = decay, .when = {"optimizer.kind", {"muon"}}},
      {.name = "optimizer.clip_norm", .type = Type::number, .least = 1e-12, .half = recipe,
       .help = "The longest that the gradient of the whole model may be; without it any length."},
      {.name = "optimizer.schedule.kind", .type = Type::choice, .fallback = "constant",
       .choices = {"constant", "linear", "cosine"}, .half = recipe,
       .help = "How the learning rate goes from lr to min_lr: not at all, by a line, by half a "
               "cosine."},
      {.name = "optimizer.schedule.warmup_steps", .fallback = 0, .most = most_steps, .half = recipe,
       .help = "Steps in which the learning rate rises to lr: step k has lr * (k + 1) / "
               "warmup_steps."},
      {.name = "optimizer.schedule.total_steps", .type = Type::count_or_auto, .fallback = "auto",
       .least = 1, .most = most_steps, .half = recipe,
       .help = "The step at which min_lr is reached; \"auto\" is train.steps."},
      {.name = "optimizer.schedule.min_lr", .type = Type::number, .fallback = 0.0, .most = 1e3,
       .half = recipe, .help = "The learning rate at the end."},
  };
}

std::vector<Key> pipeline_keys() {
  return {
      {.name = "pipeline.schedule", .type = Type::text, .fallback = "1f1b", .half = shape,
       .help = "The order of the passes: a name that `troupe schedule --list` shows, a file, or "
               "\"auto\"."},
      {.name = "pipeline.stages", .type = Type::stages, .fallback = "auto", .least = 1,
       .most = most_stages, .half = shape,
       .help = "Pieces of consecutive layers: how many, \"auto\", or boundaries such as [0, 3, 6]."},
      {.name = "pipeline.chunks", .fallback = 1, .least = 1, .most = 64, .half = shape,
       .help = "Stages on one device: a pipeline has stages / chunks devices."},
      {.name = "pipeline.replicas", .fallback = 1, .least = 1, .most = most_stages, .half = shape,
       .help = "Copies of the pipeline that share the samples of a step."},
      {.name = "pipeline.tensor", .fallback = 1, .least = 1, .most = 64, .half = recipe,
       .help = "Shards of each layer."},
      {.name = "pipeline.recompute", .type = Type::boolean, .fallback = false, .half = shape,
       .help = "Whether a stage keeps its input alone and computes the rest again: less memory, "
               "more time."},
      {.name = "pipeline.memory", .type = Type::bytes_or_auto, .fallback = "auto", .least = 0x1p20,
       .most = 0x1p60,
       .help = "What a device may use of its memory; \"auto\" is all of it."},
      {.name = "parallel.groups", .type = Type::count_or_auto, .fallback = "auto", .least = 1,
       .most = most_stages, .half = recipe,
       .help = "Groups of consecutive micro-batches whose gradients are summed first: as many "
               "replicas are possible. \"auto\" is the largest divisor of their number up to 8."},
      {.name = "parallel.exchange", .type = Type::choice, .fallback = "tree",
       .choices = {"tree", "fixed_point"}, .half = recipe,
       .help = "How the groups' sums are added up: as a binary tree, or as integers in any order."},
      {.name = "parallel.shard_optimizer", .type = Type::boolean, .fallback = false,
       .help = "Whether each replica keeps its share of the optimizer's state alone."},
  };
}

std::vector<Key> staleness_keys() {
  std::vector<std::string_view> names;
  for (const auto& preset : presets()) names.push_back(preset.name);
  return {
      {.name = "staleness.preset", .type = Type::choice, .choices = std::move(names), .half = recipe,
       .help = "Sets predict, linearize_at and gap_penalty, where these are not written."},
      {.name = "staleness.predict", .type = Type::choice, .fallback = "none",
       .choices = {"none", "msnag", "aggmsnag", "linear"}, .half = recipe,
       .help = "Which weights a forward pass sees: the newest, or what they will probably be when "
               "its gradient comes."},
      {.name = "staleness.linearize_at", .type = Type::choice, .fallback = "current",
       .choices = {"current", "forward"}, .half = recipe,
       .help = "Which weights a backward pass sees: the newest, or those of its forward pass "
               "(weight stashing)."},
      {.name = "staleness.gap_penalty", .type = Type::choice, .fallback = "none",
       .choices = {"none", "elementwise"}, .half = recipe,
       .help = "Whether a gradient counts less, the further the weights have moved since its "
               "forward pass."},
      {.name = "staleness.gap_source", .type = Type::choice, .fallback = "stash",
       .choices = {"stash", "displacement", "last_update"}, .half = recipe,
       .help = "What the gap is measured by: the old weights, their distance, or the last update."},
      {.name = "staleness.gap_statistics", .type = Type::choice, .fallback = "corrected",
       .choices = {"corrected", "ftpipe"}, .half = recipe,
       .help = "Whether the averages that scale the gap are corrected for their start."},
      {.name = "staleness.gap_scale", .type = Type::choice, .fallback = "step_ema",
       .choices = {"step_ema", "max_lr"}, .half = recipe,
       .help = "What a gap is compared with: the usual update, or one at the highest learning "
               "rate."},
      {.name = "staleness.nag", .type = Type::boolean, .fallback = false, .half = recipe,
       .help = "Whether a pass without delay looks ahead as well (Nesterov)."},
      {.name = "staleness.nag_return", .type = Type::boolean, .fallback = false, .half = recipe,
       .help = "Whether such a pass goes back to the true weights for its backward half."},
      {.name = "staleness.clip", .type = Type::choice, .fallback = "local",
       .choices = {"local", "local_sqrt_share", "delayed_global"}, .half = recipe,
       .help = "Whose norm optimizer.clip_norm bounds: a stage's own, its share, or the last that "
               "is known of all."},
      {.name = "staleness.step_every", .type = Type::count_or_auto, .fallback = "auto", .least = 1,
       .half = recipe,
       .help = "Micro-batches of a replica in one optimizer step; \"auto\" follows from batch."},
      {.name = "staleness.flush_every", .type = Type::count_or_auto, .fallback = "auto", .least = 1,
       .most = most_steps, .half = recipe,
       .help = "Micro-batches after which the pipeline drains, where a run can be taken up again; "
               "\"auto\" is 64 steps."},
  };
}

std::vector<Key> run_keys() {
  return {
      {.name = "precision.compute", .type = Type::choice, .fallback = "auto",
       .choices = {"fp32", "bf16", "fp16", "auto"}, .half = recipe,
       .help = "The type of activations and of the weights they meet; \"auto\" is the best that all "
               "devices have."},
      {.name = "precision.loss_scale.initial_power", .fallback = 16, .most = 24, .half = recipe,
       .help = "fp16 only: the first loss scale is 2 to this power."},
      {.name = "precision.loss_scale.growth_interval", .fallback = 2000, .least = 1, .half = recipe,
       .help = "fp16 only: steps without overflow after which the loss scale doubles."},
      {.name = "elastic.nodes", .type = Type::range, .fallback = "1:4096", .least = 1,
       .most = most_stages, .change = live,
       .help = "With how few nodes the run goes on, and how many it takes: \"1:8\"."},
      {.name = "elastic.on_preempt", .type = Type::choice, .fallback = "handover",
       .choices = {"handover", "checkpoint", "drop"}, .change = live,
       .help = "What a node does that is told to go: hands over its part, saves, or just goes."},
      {.name = "elastic.copies", .fallback = 2, .least = 1, .most = 8, .change = live,
       .help = "Of every shard in the memory of different hosts, the owner's included; 1 is disk "
               "only."},
      {.name = "checkpoint.dir", .type = Type::text, .fallback = "runs/{name}/checkpoints",
       .help = "Where checkpoints are kept; {name} is the run's name."},
      {.name = "checkpoint.every", .type = Type::interval, .fallback = "5m", .change = live,
       .help = "How often one is saved: \"100 steps\", or a duration."},
      {.name = "checkpoint.keep", .fallback = 3, .least = 1, .most = 1e6, .change = live,
       .help = "How many of the newest stay."},
      {.name = "train.steps", .presence = required, .least = 1, .most = most_steps, .change = live,
       .help = "After how many optimizer steps the run is done."},
      {.name = "train.eval_every", .least = 1, .most = most_steps, .change = live,
       .help = "Steps between two evaluations on data.validate; without it one at the end."},
      {.name = "train.eval_batches", .fallback = 8, .least = 1, .change = live,
       .help = "How many batches an evaluation takes, the same ones each time."},
      {.name = "train.export", .type = Type::text,
       .help = "A .safetensors file for the final weights, written when the run ends well."},
      {.name = "train.threads", .type = Type::count_or_auto, .fallback = "auto", .least = 1,
       .most = 4096,
       .help = "Threads that compute on a CPU device; \"auto\" is its share of the cores."},
      {.name = "log.every", .fallback = 10, .least = 1, .change = live,
       .help = "Steps between two lines where the output is no terminal."},
  };
}

std::vector<Key> limit_keys() {
  const auto wait = [](std::string name, Value fallback, std::string_view help) {
    return Key{.name = "limits." + name, .type = Type::duration, .fallback = std::move(fallback),
               .least = 1e6, .most = 3.2e18, .help = help};
  };
  const auto bound = [](std::string name, int fallback, std::string_view help) {
    return Key{.name = "limits." + name, .fallback = fallback, .least = 1, .most = 1e6,
               .help = help};
  };
  return {
      wait("heartbeat_every", "100ms", "How often a node says that it lives."),
      wait("silence_floor", "300ms", "A pause between heartbeats that never counts as silence."),
      wait("inventory_patience", "500ms", "For a node to say what it holds, once it was asked."),
      wait("reconnect_patience", "1s", "For a node whose connection closed without a word."),
      {.name = "limits.stuck_factor", .type = Type::number, .fallback = 3.0, .least = 1, .most = 1e3,
       .help = "How many times its usual time an action may take before its node counts as stuck."},
      wait("stuck_floor", "2s", "A time for which no action counts as stuck."),
      wait("start_patience", "30s", "For the first nodes to come."),
      wait("gather_patience", "5s", "For nodes to come back after the head started again."),
      wait("prepare_patience", "10s", "For a node to make ready for a new plan."),
      wait("load_patience", "5s", "For a shard to arrive, beyond what its bytes take."),
      wait("decision_patience", "4s", "For all stages to agree on a step."),
      bound("shadow_patience", 10, "Steps that a copy may be late before it is moved."),
      wait("head_patience", "10m", "For a head that is gone; nodes train on meanwhile."),
      wait("suspend_patience", "24h", "For nodes, when fewer are there than elastic.nodes asks for."),
      wait("journal_patience", "60s", "For the head's journal to reach the disk."),
      wait("save_patience", "60s", "For a checkpoint to reach the disk."),
      bound("mailbox_limit", 10000, "Messages that an actor lets wait."),
      bound("socket_high_water", 1000, "Messages that a socket lets wait."),
      bound("futile_epochs", 5, "Plans in a row that may fail before the run halts."),
      bound("strikes", 3, "Failures of a host within strike_window before it is left out."),
      wait("strike_window", "10m", "The time in which a host's failures are counted."),
  };
}

}  // namespace

std::vector<Key> own_keys() {
  std::vector<Key> keys = top_keys();
  for (auto part : {data_keys, optimizer_keys, pipeline_keys, staleness_keys, run_keys, limit_keys})
    for (auto& key : part()) keys.push_back(std::move(key));
  return keys;
}

const std::vector<Section>& sections() {
  static const std::vector<Section> all = {
      {"", "Keys that stand above all tables."},
      {"model", "What is trained."},
      {"data", "What it is trained on."},
      {"batch", "How samples make a step."},
      {"optimizer", "How a step changes the weights."},
      {"optimizer.schedule", "The learning rate as a function of the step."},
      {"pipeline", "How the layers lie on devices, and in which order they compute."},
      {"parallel", "How replicas share their work."},
      {"staleness", "Which weights a pass sees in an asynchronous schedule."},
      {"precision", "In which types numbers are computed."},
      {"precision.loss_scale", "What keeps small gradients from vanishing in fp16."},
      {"elastic", "What happens when nodes come and go."},
      {"checkpoint", "What is saved, where and how often."},
      {"train", "How long, and what is done on the way."},
      {"log", "What a run prints."},
      {"limits", "Every wait and every queue; the defaults fit a cluster in one building."},
  };
  return all;
}

const std::vector<Preset>& presets() {
  using enum Preset::Recompute;
  static const std::vector<Preset> all = {
      {"stale", "none", "current", "none"},
      {"ws", "none", "forward", "none"},
      {"msnag", "msnag", "current", "none"},
      {"aggmsnag", "aggmsnag", "current", "none"},
      {"msnag_ws", "msnag", "forward", "none"},
      {"ws_ga", "none", "forward", "elementwise"},
      {"ga_jfl", "none", "current", "elementwise", needed},
      {"ws_msnag_ga", "msnag", "forward", "elementwise"},
      {"ws_msnag_ga_jfl", "msnag", "current", "elementwise", needed},
  };
  return all;
}

}  // namespace troupe::config
