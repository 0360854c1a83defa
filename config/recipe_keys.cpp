#include "config/keys.h"

namespace troupe::config {
namespace {

using enum Half;

std::vector<Key> top_keys() {
  return {
      {.name = "name",
       .type = Type::text,
       .help = "What the run is called, on the head and in paths; else its file's name."},
      {.name = "seed",
       .fallback = 1,
       .most = 9e15,
       .half = recipe,
       .help = "What all random numbers are drawn from: first weights, order of samples, dropout."},
      {.name = "exactness",
       .type = Type::choice,
       .fallback = "bits",
       .choices = {"bits", "samples"},
       .half = recipe,
       .help =
           "What no change of plan may change: every bit, or only which samples make a step. "
           "With samples NCCL adds up what replicas give, in an order of its own, where it links "
           "all that hold a stage."},
  };
}

std::vector<Key> data_keys() {
  return {
      {.name = "data.train",
       .type = Type::text,
       .presence = Key::Presence::required,
       .half = recipe,
       .help = "Made data (\"made:markov?states=64\"), a text file, .jsonl, .bin token shards, IDX "
               "or .safetensors."},
      {.name = "data.validate",
       .type = Type::text,
       .help = "Data of the same kind that is never trained on; without it nothing is evaluated."},
      {.name = "data.order",
       .type = Type::choice,
       .fallback = "shuffled",
       .choices = {"shuffled", "sequential"},
       .half = recipe,
       .help = "The order of samples: a function of the seed and the pass, or as they lie."},
      {.name = "batch.global",
       .presence = Key::Presence::required,
       .least = 1,
       .half = recipe,
       .help = "Samples in one optimizer step; constant, whatever the cluster does."},
      {.name = "batch.micro",
       .type = Type::count_or_auto,
       .fallback = "auto",
       .least = 1,
       .half = recipe,
       .help = "Samples that pass through a stage at once."},
  };
}

std::vector<Key> optimizer_keys() {
  const Condition with_betas{"optimizer.kind", {"adam", "adamw", "nadamw", "muon"}};
  constexpr std::string_view lr = "The learning rate at its height.";
  constexpr std::string_view momentum = "How much of the last update stays in the next.";
  constexpr std::string_view nesterov = "Whether the momentum looks a step ahead.";
  constexpr std::string_view decay =
      "How fast weights shrink: as part of the gradient (sgd, adam) or beside it (the others).";
  const Value two_betas = Value::List{0.9, 0.999};
  return {
      {.name = "optimizer.kind",
       .type = Type::choice,
       .fallback = "adamw",
       .choices = {"sgd", "adam", "adamw", "nadamw", "muon"},
       .half = recipe,
       .help = "How gradients become the next weights."},
      {.name = "optimizer.lr",
       .type = Type::number,
       .fallback = 1e-3,
       .most = 1e3,
       .half = recipe,
       .change = Change::live,
       .help = lr,
       .when = {"optimizer.kind", {"sgd", "adam", "adamw", "muon"}}},
      {.name = "optimizer.lr",
       .type = Type::number,
       .fallback = 2e-3,
       .most = 1e3,
       .half = recipe,
       .change = Change::live,
       .help = lr,
       .when = {"optimizer.kind", {"nadamw"}}},
      {.name = "optimizer.changes",
       .type = Type::text,
       .half = recipe,
       .help = "Other values of optimizer.lr, each after so many steps: \"1e-3 from 120, 5e-4 from "
               "200\". `troupe set` adds to them."},
      {.name = "optimizer.momentum",
       .type = Type::number,
       .fallback = 0.0,
       .most = 0.999999,
       .half = recipe,
       .help = momentum,
       .when = {"optimizer.kind", {"sgd"}}},
      {.name = "optimizer.momentum",
       .type = Type::number,
       .fallback = 0.95,
       .most = 0.999999,
       .half = recipe,
       .help = momentum,
       .when = {"optimizer.kind", {"muon"}}},
      {.name = "optimizer.momentum_form",
       .type = Type::choice,
       .fallback = "pytorch",
       .choices = {"pytorch", "sutskever"},
       .half = recipe,
       .help = "Whether the learning rate multiplies the momentum, or each gradient before it goes "
               "in, so that a change of the rate leaves the momentum as it is.",
       .when = {"optimizer.kind", {"sgd"}}},
      {.name = "optimizer.nesterov",
       .type = Type::boolean,
       .fallback = false,
       .half = recipe,
       .help = nesterov,
       .when = {"optimizer.kind", {"sgd"}}},
      {.name = "optimizer.nesterov",
       .type = Type::boolean,
       .fallback = true,
       .half = recipe,
       .help = nesterov,
       .when = {"optimizer.kind", {"muon"}}},
      {.name = "optimizer.betas",
       .type = Type::numbers,
       .fallback = two_betas,
       .most = 0.999999,
       .length = 2,
       .half = recipe,
       .help = "How slowly the first and the second moment change; of muon: for what is no hidden "
               "matrix.",
       .when = with_betas},
      {.name = "optimizer.eps",
       .type = Type::number,
       .fallback = 1e-8,
       .most = 1,
       .half = recipe,
       .help = "Added to the denominator.",
       .when = with_betas},
      {.name = "optimizer.weight_decay",
       .type = Type::number,
       .fallback = 0.0,
       .most = 1e3,
       .half = recipe,
       .help = decay,
       .when = {"optimizer.kind", {"sgd", "adam", "nadamw"}}},
      {.name = "optimizer.weight_decay",
       .type = Type::number,
       .fallback = 0.01,
       .most = 1e3,
       .half = recipe,
       .help = decay,
       .when = {"optimizer.kind", {"adamw"}}},
      {.name = "optimizer.weight_decay",
       .type = Type::number,
       .fallback = 0.1,
       .most = 1e3,
       .half = recipe,
       .help = decay,
       .when = {"optimizer.kind", {"muon"}}},
      {.name = "optimizer.clip_norm",
       .type = Type::number,
       .least = 1e-12,
       .half = recipe,
       .help = "The longest that the gradient of the whole model may be; without it any length."},
      {.name = "optimizer.schedule.kind",
       .type = Type::choice,
       .fallback = "constant",
       .choices = {"constant", "linear", "cosine"},
       .half = recipe,
       .help = "How the learning rate goes from lr to min_lr: not at all, by a line, by half a "
               "cosine."},
      {.name = "optimizer.schedule.warmup_steps",
       .fallback = 0,
       .most = most_steps,
       .half = recipe,
       .help = "Steps in which the learning rate rises to lr: step k has lr * (k + 1) / "
               "warmup_steps."},
      {.name = "optimizer.schedule.total_steps",
       .type = Type::count_or_auto,
       .fallback = "auto",
       .least = 1,
       .most = most_steps,
       .half = recipe,
       .help = "The step at which min_lr is reached; \"auto\" is train.steps."},
      {.name = "optimizer.schedule.min_lr",
       .type = Type::number,
       .fallback = 0.0,
       .most = 1e3,
       .half = recipe,
       .help = "The learning rate at the end."},
  };
}

std::vector<Key> precision_keys() {
  return {
      {.name = "precision.compute",
       .type = Type::choice,
       .fallback = "auto",
       .choices = {"fp32", "tf32", "fp16", "fp16-chain", "fp16-gpu", "bf16", "bf16-pairs",
                   "bf16-blocks", "bf16-gpu", "auto"},
       .half = recipe,
       .help =
           "The type of activations and of the weights they meet; \"auto\" is the best that all "
           "devices have. \"bf16\" adds products in the order that the processor is fastest at: "
           "\"bf16-blocks\" as AMX has it, \"bf16-pairs\" as AVX-512 has it; \"fp16\", which "
           "scales the loss, as fp32 does: \"fp16-chain\". Whoever names one of these has the "
           "same bits on every processor. With train.device = \"cuda\" \"bf16\" and \"auto\" "
           "mean \"bf16-gpu\", and \"fp16\" means \"fp16-gpu\": by the tensor cores and in "
           "NVIDIA's order, as \"tf32\", which is fp32 whose products have the precision of "
           "fp16. They have the same bits each time on GPUs of one kind, and on nothing else."},
      {.name = "precision.loss_scale.initial_power",
       .fallback = 16,
       .most = 24,
       .half = recipe,
       .help = "fp16 only: the first loss scale is 2 to this power. It halves with every step that "
               "overflows, down to 1."},
      {.name = "precision.loss_scale.growth_interval",
       .fallback = 2000,
       .least = 1,
       .half = recipe,
       .help = "fp16 only: steps in a row without overflow after which the loss scale doubles, up "
               "to 2 to the power of 24."},
  };
}

std::vector<Key> staleness_keys() {
  std::vector<std::string_view> names;
  for (const auto& preset : presets()) names.push_back(preset.name);
  return {
      {.name = "staleness.preset",
       .type = Type::choice,
       .choices = std::move(names),
       .half = recipe,
       .help = "Sets predict, linearize_at and gap_penalty, where these are not written."},
      {.name = "staleness.predict",
       .type = Type::choice,
       .fallback = "none",
       .choices = {"none", "msnag", "aggmsnag", "linear"},
       .half = recipe,
       .help = "Which weights a forward pass sees: the newest, or what they will probably be when "
               "its gradient comes."},
      {.name = "staleness.linearize_at",
       .type = Type::choice,
       .fallback = "current",
       .choices = {"current", "forward", "extrapolated"},
       .half = recipe,
       .help = "Which weights a backward pass sees: the newest, those of its forward pass "
               "(weight stashing), or what their drift tells of those (PipeMare's T2)."},
      {.name = "staleness.gap_penalty",
       .type = Type::choice,
       .fallback = "none",
       .choices = {"none", "elementwise", "tensor_norm"},
       .half = recipe,
       .help = "Whether a gradient counts less, the further the weights have moved since its "
               "forward pass: each by its own, or all of a tensor alike."},
      {.name = "staleness.gap_source",
       .type = Type::choice,
       .fallback = "stash",
       .choices = {"stash", "last_update"},
       .half = recipe,
       .help = "What the gap is measured by: the old weights, or the last update."},
      {.name = "staleness.gap_statistics",
       .type = Type::choice,
       .fallback = "corrected",
       .choices = {"corrected", "ftpipe"},
       .half = recipe,
       .help = "Whether the averages that scale the gap are corrected for their start."},
      {.name = "staleness.gap_scale",
       .type = Type::choice,
       .fallback = "step_ema",
       .choices = {"step_ema", "max_lr"},
       .half = recipe,
       .help = "What a gap is compared with: the usual update, or one at the highest learning "
               "rate."},
      {.name = "staleness.gap_factor",
       .type = Type::choice,
       .fallback = "none",
       .choices = {"none", "scalar", "max"},
       .half = recipe,
       .help = "Whether a stage's gap counts for the stages before it: by a smaller gradient that "
               "it sends, or by the largest of their penalties."},
      {.name = "staleness.second_moment",
       .type = Type::choice,
       .fallback = "guarded",
       .choices = {"guarded", "frozen"},
       .half = recipe,
       .help = "Whether a prediction for adam or adamw guards its denominator; frozen is FTPipe's, "
               "and may explode."},
      {.name = "staleness.synchronous_steps",
       .fallback = 0,
       .most = most_steps,
       .half = recipe,
       .help = "The first steps of a run, after each of which the pipeline drains, so that no "
               "weight is stale (PipeMare's T3)."},
      {.name = "staleness.anneal_steps",
       .fallback = 0,
       .most = most_steps,
       .half = recipe,
       .help = "Steps after those in which the learning rate of a late stage rises to that of the "
               "others (PipeMare's T1)."},
      {.name = "staleness.drift_memory",
       .type = Type::number,
       .fallback = 0.135,
       .least = 1e-12,
       .most = 1,
       .half = recipe,
       .help = "With linearize_at = \"extrapolated\": what the drift still knows, after a "
               "micro-batch's delay, of what was before."},
      {.name = "staleness.delay_compensation",
       .type = Type::number,
       .fallback = 0.0,
       .most = 1e3,
       .half = recipe,
       .help = "How much of g * g * gap is added to a late gradient g (DC-ASGD)."},
      {.name = "staleness.spike_compensation",
       .type = Type::boolean,
       .fallback = false,
       .half = recipe,
       .help = "Whether a late gradient makes up at once for the steps it missed; for sgd with "
               "momentum."},
      {.name = "staleness.nag",
       .type = Type::boolean,
       .fallback = false,
       .half = recipe,
       .help = "Whether a pass without delay looks ahead as well (Nesterov)."},
      {.name = "staleness.nag_return",
       .type = Type::boolean,
       .fallback = true,
       .half = recipe,
       .help = "Whether the backward half of such a pass sees the same point, not the true "
               "weights."},
      {.name = "staleness.clip",
       .type = Type::choice,
       .fallback = "local",
       .choices = {"local", "local_sqrt_share"},
       .half = recipe,
       .help = "What bounds the norm of a stage's own gradient: the whole of optimizer.clip_norm, "
               "or the "
               "root of its share of the parameters of it."},
      {.name = "staleness.step_every",
       .type = Type::count_or_auto,
       .fallback = "auto",
       .least = 1,
       .half = recipe,
       .help = "Micro-batches of a replica in one optimizer step; \"auto\" follows from batch."},
      {.name = "staleness.flush_every",
       .type = Type::count_or_auto,
       .fallback = "auto",
       .least = 1,
       .most = most_steps,
       .half = recipe,
       .help = "Micro-batches after which the pipeline drains, where a run can be taken up again; "
               "\"auto\" is 64 steps."},
  };
}

}  // namespace

std::vector<Key> recipe_keys() {
  std::vector<Key> keys = top_keys();
  for (auto part : {data_keys, optimizer_keys, precision_keys, staleness_keys})
    for (auto& key : part()) keys.push_back(std::move(key));
  return keys;
}

}  // namespace troupe::config
