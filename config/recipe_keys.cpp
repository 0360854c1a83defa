#include "config/keys.h"

namespace troupe::config {
namespace {

using enum Half;

std::vector<Key> top_keys() {
  return {
      {.name = "name",
       .type = Type::text,
       .help = "The run's name, used by the head and in paths. Default: the name of the "
               "configuration file."},
      {.name = "seed",
       .fallback = 1,
       .most = 9e15,
       .half = recipe,
       .help = "Random seed for initial weights, sample order and dropout."},
      {.name = "exactness",
       .type = Type::choice,
       .fallback = "bits",
       .choices = {"bits", "samples"},
       .half = recipe,
       .help = "What stays identical when the plan changes: every bit (bits), or only the samples "
               "of each step (samples). With samples, NCCL all-reduces gradients in its own order "
               "if it links all replicas of a stage."},
  };
}

std::vector<Key> data_keys() {
  return {
      {.name = "data.train",
       .type = Type::text,
       .presence = Key::Presence::required,
       .half = recipe,
       .help = "Training data: synthetic (\"made:markov?states=64\"), a text file, .jsonl, .bin "
               "token shards, IDX or .safetensors."},
      {.name = "data.validate",
       .type = Type::text,
       .help = "Validation data of the same kind as data.train. Default: no evaluation."},
      {.name = "data.order",
       .type = Type::choice,
       .fallback = "shuffled",
       .choices = {"shuffled", "sequential"},
       .half = recipe,
       .help = "Sample order: shuffled by the seed and the epoch, or as stored."},
      {.name = "batch.global",
       .presence = Key::Presence::required,
       .least = 1,
       .half = recipe,
       .help = "Global batch size: samples in one optimizer step. It stays constant when nodes "
               "join or leave."},
      {.name = "batch.micro",
       .type = Type::count_or_auto,
       .fallback = "auto",
       .least = 1,
       .half = recipe,
       .help = "Micro-batch size: samples that pass through a stage at once."},
  };
}

std::vector<Key> optimizer_keys() {
  const Condition with_betas{"optimizer.kind", {"adam", "adamw", "nadamw", "muon"}};
  constexpr std::string_view lr = "Peak learning rate.";
  constexpr std::string_view momentum = "Momentum factor.";
  constexpr std::string_view nesterov = "Use Nesterov momentum.";
  constexpr std::string_view decay =
      "Weight decay: added to the gradient (sgd, adam) or decoupled (nadamw, adamw, muon).";
  const Value two_betas = Value::List{0.9, 0.999};
  return {
      {.name = "optimizer.kind",
       .type = Type::choice,
       .fallback = "adamw",
       .choices = {"sgd", "adam", "adamw", "nadamw", "muon"},
       .half = recipe,
       .help = "Optimizer."},
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
       .help = "Changes of optimizer.lr at given steps: \"1e-3 from 120, 5e-4 from 200\". `troupe "
               "set` appends to this list."},
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
       .help = "Where the learning rate is applied: to the momentum buffer (pytorch), or to each "
               "gradient before it enters the buffer (sutskever). With sutskever a change of the "
               "rate does not rescale the buffer.",
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
       .help = "Decay rates of the first and second moment. With muon they apply to parameters "
               "that are not hidden matrices.",
       .when = with_betas},
      {.name = "optimizer.eps",
       .type = Type::number,
       .fallback = 1e-8,
       .most = 1,
       .half = recipe,
       .help = "Small number added to the denominator for numerical stability.",
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
       .help = "Clip the global gradient norm to this value. Default: no clipping."},
      {.name = "optimizer.schedule.kind",
       .type = Type::choice,
       .fallback = "constant",
       .choices = {"constant", "linear", "cosine"},
       .half = recipe,
       .help = "Decay of the learning rate from lr to min_lr: none, linear, or half a cosine."},
      {.name = "optimizer.schedule.warmup_steps",
       .fallback = 0,
       .most = most_steps,
       .half = recipe,
       .help = "Linear warmup steps: step k uses lr * (k + 1) / warmup_steps."},
      {.name = "optimizer.schedule.total_steps",
       .type = Type::count_or_auto,
       .fallback = "auto",
       .least = 1,
       .most = most_steps,
       .half = recipe,
       .help = "Step at which the learning rate reaches min_lr; \"auto\" is train.steps."},
      {.name = "optimizer.schedule.min_lr",
       .type = Type::number,
       .fallback = 0.0,
       .most = 1e3,
       .half = recipe,
       .help = "Final learning rate."},
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
           "Type of activations and of weights in matrix products. \"auto\" is the fastest type "
           "that all devices support. On CPUs \"bf16\" means the summation order that is fastest "
           "there: \"bf16-blocks\" (AMX) or \"bf16-pairs\" (AVX-512). \"fp16\" scales the loss and "
           "means \"fp16-chain\", which sums in the order of fp32. \"bf16-blocks\", \"bf16-pairs\" "
           "and \"fp16-chain\" give the same bits on every processor. With train.device = "
           "\"cuda\", \"bf16\" and \"auto\" mean \"bf16-gpu\", and \"fp16\" means \"fp16-gpu\". "
           "\"bf16-gpu\", \"fp16-gpu\" and \"tf32\" (fp32 with products rounded to 10 fraction "
           "bits) use tensor cores. Their bits are reproducible only on GPUs of one model."},
      {.name = "precision.loss_scale.initial_power",
       .fallback = 16,
       .most = 24,
       .half = recipe,
       .help = "fp16 only: the initial loss scale is 2 to this power. Each step that overflows "
               "halves it, down to 1."},
      {.name = "precision.loss_scale.growth_interval",
       .fallback = 2000,
       .least = 1,
       .half = recipe,
       .help = "fp16 only: consecutive steps without overflow before the loss scale doubles, up to "
               "2 to the power of 24."},
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
       .help =
           "Sets predict, linearize_at and gap_penalty if the configuration does not set them."},
      {.name = "staleness.predict",
       .type = Type::choice,
       .fallback = "none",
       .choices = {"none", "msnag", "aggmsnag", "linear"},
       .half = recipe,
       .help = "Weights that a forward pass uses: the newest (none), or a prediction for the time "
               "when its gradient arrives."},
      {.name = "staleness.linearize_at",
       .type = Type::choice,
       .fallback = "current",
       .choices = {"current", "forward", "extrapolated"},
       .half = recipe,
       .help = "Weights that a backward pass uses: the newest, those of its forward pass (weight "
               "stashing), or an estimate of those from the drift of the weights (PipeMare's T2)."},
      {.name = "staleness.gap_penalty",
       .type = Type::choice,
       .fallback = "none",
       .choices = {"none", "elementwise", "tensor_norm"},
       .half = recipe,
       .help = "Scale a gradient down by how far the weights have moved since its forward pass: "
               "per element, or per tensor."},
      {.name = "staleness.gap_source",
       .type = Type::choice,
       .fallback = "stash",
       .choices = {"stash", "last_update"},
       .half = recipe,
       .help = "How the gap is measured: against the stashed weights, or from the last update."},
      {.name = "staleness.gap_statistics",
       .type = Type::choice,
       .fallback = "corrected",
       .choices = {"corrected", "ftpipe"},
       .half = recipe,
       .help = "Whether the moving averages that scale the gap are corrected for initial bias "
               "(corrected), or not (ftpipe)."},
      {.name = "staleness.gap_scale",
       .type = Type::choice,
       .fallback = "step_ema",
       .choices = {"step_ema", "max_lr"},
       .half = recipe,
       .help = "What a gap is compared with: the moving average of the updates, or an update at "
               "the peak learning rate."},
      {.name = "staleness.gap_factor",
       .type = Type::choice,
       .fallback = "none",
       .choices = {"none", "scalar", "max"},
       .half = recipe,
       .help = "Whether a stage's gap also scales the stages before it: not at all, by scaling the "
               "gradient it sends (scalar), or by the largest of their penalties (max)."},
      {.name = "staleness.second_moment",
       .type = Type::choice,
       .fallback = "guarded",
       .choices = {"guarded", "frozen"},
       .half = recipe,
       .help = "Second moment in weight prediction for adam and adamw: guarded keeps the "
               "denominator away from zero; frozen is FTPipe's form and may diverge."},
      {.name = "staleness.synchronous_steps",
       .fallback = 0,
       .most = most_steps,
       .half = recipe,
       .help = "Number of first steps that run synchronously: the pipeline drains after each, so "
               "that no gradient is stale (PipeMare's T3)."},
      {.name = "staleness.anneal_steps",
       .fallback = 0,
       .most = most_steps,
       .half = recipe,
       .help = "Steps after synchronous_steps over which the learning rate of stages with delayed "
               "gradients rises to the full rate (PipeMare's T1)."},
      {.name = "staleness.drift_memory",
       .type = Type::number,
       .fallback = 0.135,
       .least = 1e-12,
       .most = 1,
       .half = recipe,
       .help = "With linearize_at = \"extrapolated\": share of the old drift estimate that remains "
               "after one micro-batch's delay."},
      {.name = "staleness.delay_compensation",
       .type = Type::number,
       .fallback = 0.0,
       .most = 1e3,
       .half = recipe,
       .help = "Factor of g * g * gap that is added to a delayed gradient g (DC-ASGD)."},
      {.name = "staleness.spike_compensation",
       .type = Type::boolean,
       .fallback = false,
       .half = recipe,
       .help = "Apply at once what a delayed gradient would have added in the steps it missed. For "
               "sgd with momentum."},
      {.name = "staleness.nag",
       .type = Type::boolean,
       .fallback = false,
       .half = recipe,
       .help = "Predict weights also for passes without delay (Nesterov)."},
      {.name = "staleness.nag_return",
       .type = Type::boolean,
       .fallback = true,
       .half = recipe,
       .help = "With nag: the backward pass uses the predicted weights of its forward pass, not "
               "the current weights."},
      {.name = "staleness.clip",
       .type = Type::choice,
       .fallback = "local",
       .choices = {"local", "local_sqrt_share"},
       .half = recipe,
       .help =
           "Limit for the gradient norm of one stage: optimizer.clip_norm (local), or clip_norm "
           "times the square root of the stage's share of the parameters (local_sqrt_share)."},
      {.name = "staleness.step_every",
       .type = Type::count_or_auto,
       .fallback = "auto",
       .least = 1,
       .half = recipe,
       .help = "Micro-batches per replica in one optimizer step; \"auto\" follows from "
               "batch.global and batch.micro."},
      {.name = "staleness.flush_every",
       .type = Type::count_or_auto,
       .fallback = "auto",
       .least = 1,
       .most = most_steps,
       .half = recipe,
       .help = "Micro-batches between two drains of the pipeline. A run can resume from a drain. "
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
