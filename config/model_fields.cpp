#include <string_view>
#include <utility>
#include <vector>

#include "config/keys.h"
#include "config/rate_changes.h"
#include "config/section/parameter_group.h"
#include "config/section/running.h"

namespace troupe::config {

namespace {
using enum Half;
using section::most_steps;
}  // namespace

Fields<models::OptimizerConfig> optimizer_fields() {
  using Optimizer = models::OptimizerConfig;
  using Rate = models::LearningRate;
  const auto rate = []<class Member>(Member Rate::*member, Key key) {
    auto read = [member, key](const Value& value, Optimizer& into) {
      detail::read_value(key, value, into.rate.*member);
    };
    return Field<Optimizer>{std::move(key), std::move(read)};
  };
  const Condition with_betas{"optimizer.kind", {"adam", "adamw", "nadamw", "muon"}};
  constexpr std::string_view lr = "Peak learning rate.";
  constexpr std::string_view momentum = "Momentum factor.";
  constexpr std::string_view nesterov = "Use Nesterov momentum.";
  constexpr std::string_view decay =
      "Weight decay: added to the gradient (sgd, adam) or decoupled (nadamw, adamw, muon).";
  const Value two_betas = Value::List{0.9, 0.999};
  return {
      field(&Optimizer::kind, {.name = "optimizer.kind",
                               .type = Type::choice,
                               .fallback = "adamw",
                               .choices = {"sgd", "adam", "adamw", "nadamw", "muon"},
                               .half = recipe,
                               .help = "Optimizer."}),
      rate(&Rate::lr, {.name = "optimizer.lr",
                       .type = Type::number,
                       .fallback = 1e-3,
                       .most = 1e3,
                       .half = recipe,
                       .change = Change::live,
                       .help = lr,
                       .when = {"optimizer.kind", {"sgd", "adam", "adamw", "muon"}}}),
      rate(&Rate::lr, {.name = "optimizer.lr",
                       .type = Type::number,
                       .fallback = 2e-3,
                       .most = 1e3,
                       .half = recipe,
                       .change = Change::live,
                       .help = lr,
                       .when = {"optimizer.kind", {"nadamw"}}}),
      // agreement.cpp reports a text that cannot be parsed.
      {{.name = "optimizer.changes",
        .type = Type::text,
        .half = recipe,
        .help = "Changes of optimizer.lr at given steps: \"1e-3 from 120, 5e-4 from 200\". `troupe "
                "set` appends to this list."},
       [](const Value& value, Optimizer& into) {
         if (auto changes = parse_rate_changes(*value.text()))
           into.rate.changes = std::move(*changes);
       }},
      field(&Optimizer::momentum, {.name = "optimizer.momentum",
                                   .type = Type::number,
                                   .fallback = 0.0,
                                   .most = 0.999999,
                                   .half = recipe,
                                   .help = momentum,
                                   .when = {"optimizer.kind", {"sgd"}}}),
      field(&Optimizer::momentum, {.name = "optimizer.momentum",
                                   .type = Type::number,
                                   .fallback = 0.95,
                                   .most = 0.999999,
                                   .half = recipe,
                                   .help = momentum,
                                   .when = {"optimizer.kind", {"muon"}}}),
      field(&Optimizer::momentum_form,
            {.name = "optimizer.momentum_form",
             .type = Type::choice,
             .fallback = "pytorch",
             .choices = {"pytorch", "sutskever"},
             .half = recipe,
             .help = "Where the learning rate is applied: to the momentum buffer (pytorch), or to "
                     "each gradient before it enters the buffer (sutskever). With sutskever a "
                     "change of the rate does not rescale the buffer.",
             .when = {"optimizer.kind", {"sgd"}}}),
      field(&Optimizer::nesterov, {.name = "optimizer.nesterov",
                                   .type = Type::boolean,
                                   .fallback = false,
                                   .half = recipe,
                                   .help = nesterov,
                                   .when = {"optimizer.kind", {"sgd"}}}),
      field(&Optimizer::nesterov, {.name = "optimizer.nesterov",
                                   .type = Type::boolean,
                                   .fallback = true,
                                   .half = recipe,
                                   .help = nesterov,
                                   .when = {"optimizer.kind", {"muon"}}}),
      {{.name = "optimizer.betas",
        .type = Type::numbers,
        .fallback = two_betas,
        .most = 0.999999,
        .length = 2,
        .half = recipe,
        .help = "Decay rates of the first and second moment. With muon they apply to parameters "
                "that are not hidden matrices.",
        .when = with_betas},
       [](const Value& value, Optimizer& into) {
         into.beta1 = (*value.list())[0].number();
         into.beta2 = (*value.list())[1].number();
       }},
      field(&Optimizer::eps,
            {.name = "optimizer.eps",
             .type = Type::number,
             .fallback = 1e-8,
             .most = 1,
             .half = recipe,
             .help = "Small number added to the denominator for numerical stability.",
             .when = with_betas}),
      field(&Optimizer::weight_decay, {.name = "optimizer.weight_decay",
                                       .type = Type::number,
                                       .fallback = 0.0,
                                       .most = 1e3,
                                       .half = recipe,
                                       .help = decay,
                                       .when = {"optimizer.kind", {"sgd", "adam", "nadamw"}}}),
      field(&Optimizer::weight_decay, {.name = "optimizer.weight_decay",
                                       .type = Type::number,
                                       .fallback = 0.01,
                                       .most = 1e3,
                                       .half = recipe,
                                       .help = decay,
                                       .when = {"optimizer.kind", {"adamw"}}}),
      field(&Optimizer::weight_decay, {.name = "optimizer.weight_decay",
                                       .type = Type::number,
                                       .fallback = 0.1,
                                       .most = 1e3,
                                       .half = recipe,
                                       .help = decay,
                                       .when = {"optimizer.kind", {"muon"}}}),
      field(&Optimizer::clip_norm,
            {.name = "optimizer.clip_norm",
             .type = Type::number,
             .least = 1e-12,
             .half = recipe,
             .help = "Clip the global gradient norm to this value. Default: no clipping."}),
      field(&Optimizer::ema,
            {.name = "train.ema",
             .type = Type::number,
             .least = 1e-9,
             .most = 0.9999999,
             .half = recipe,
             .help = "Keep an exponential average of the weights in checkpoints, of which each "
                     "step keeps this share: 0.999. `troupe eval` and `troupe checkpoint export` "
                     "use it with --ema. Default: none."}),
      {{.name = "optimizer.group",
        .type = Type::groups,
        .half = recipe,
        .help = "Parameters with settings of their own, as [[optimizer.group]] tables; the first "
                "whose patterns match a name takes the parameter. Keys: match (patterns such as "
                "\"*.bias\"), weight_decay, frozen (true: not trained), and lr (a factor on the "
                "learning rate)."},
       [](const Value& value, Optimizer& into) { into.groups = section::read_groups(value); }},
      rate(&Rate::kind,
           {.name = "optimizer.schedule.kind",
            .type = Type::choice,
            .fallback = "constant",
            .choices = {"constant", "linear", "cosine", "wsd"},
            .half = recipe,
            .help =
                "Decay of the learning rate from lr to min_lr: none, linear, half a cosine, or at "
                "the end alone (wsd: warm-up, stable, decay)."}),
      rate(&Rate::warmup_steps,
           {.name = "optimizer.schedule.warmup_steps",
            .fallback = 0,
            .most = most_steps,
            .half = recipe,
            .help = "Linear warmup steps: step k uses lr * (k + 1) / warmup_steps."}),
      // "auto" means train.steps, which another struct holds.
      {{.name = "optimizer.schedule.total_steps",
        .type = Type::count_or_auto,
        .fallback = "auto",
        .least = 1,
        .most = most_steps,
        .half = recipe,
        .help = "Step at which the learning rate reaches min_lr; \"auto\" is train.steps."},
       [](const Value& value, Optimizer& into) {
         if (const auto* steps = value.integer()) into.rate.total_steps = *steps;
       }},
      rate(&Rate::min_lr, {.name = "optimizer.schedule.min_lr",
                           .type = Type::number,
                           .fallback = 0.0,
                           .most = 1e3,
                           .half = recipe,
                           .help = "Final learning rate."}),
      rate(&Rate::decay_steps,
           {.name = "optimizer.schedule.decay_steps",
            .type = Type::count_or_auto,
            .fallback = "auto",
            .least = 1,
            .most = most_steps,
            .half = recipe,
            .help = "Steps before total_steps in which the learning rate falls; \"auto\" is a "
                    "tenth of total_steps.",
            .when = {"optimizer.schedule.kind", {"wsd"}}}),
      rate(&Rate::decay, {.name = "optimizer.schedule.decay",
                          .type = Type::choice,
                          .fallback = "linear",
                          .choices = {"linear", "sqrt"},
                          .half = recipe,
                          .help = "Form of the fall: linear, or 1 - sqrt(progress), which falls "
                                  "fast at first.",
                          .when = {"optimizer.schedule.kind", {"wsd"}}}),
  };
}

std::vector<Key> group_keys() {
  std::vector<Key> keys;
  add_keys(keys, section::parameter_group_fields());
  return keys;
}

Fields<models::StalenessOptions> staleness_fields() {
  using Staleness = models::StalenessOptions;
  std::vector<std::string_view> names;
  for (const auto& preset : presets()) names.push_back(preset.name);
  return {
      {{.name = "staleness.preset",
        .type = Type::choice,
        .choices = std::move(names),
        .half = recipe,
        .help =
            "Sets predict, linearize_at and gap_penalty if the configuration does not set them."},
       {}},
      field(&Staleness::predict, {.name = "staleness.predict",
                                  .type = Type::choice,
                                  .fallback = "none",
                                  .choices = {"none", "msnag", "aggmsnag", "linear"},
                                  .half = recipe,
                                  .help = "Weights that a forward pass uses: the newest (none), or "
                                          "a prediction for the time when its gradient arrives."}),
      field(&Staleness::linearize_at,
            {.name = "staleness.linearize_at",
             .type = Type::choice,
             .fallback = "current",
             .choices = {"current", "forward", "extrapolated"},
             .half = recipe,
             .help = "Weights that a backward pass uses: the newest, those of its forward pass "
                     "(weight stashing), or an estimate of those from the drift of the weights "
                     "(PipeMare's T2)."}),
      field(&Staleness::gap_penalty,
            {.name = "staleness.gap_penalty",
             .type = Type::choice,
             .fallback = "none",
             .choices = {"none", "elementwise", "tensor_norm"},
             .half = recipe,
             .help = "Scale a gradient down by how far the weights have moved since its forward "
                     "pass: per element, or per tensor."}),
      field(&Staleness::gap_source,
            {.name = "staleness.gap_source",
             .type = Type::choice,
             .fallback = "stash",
             .choices = {"stash", "last_update"},
             .half = recipe,
             .help =
                 "How the gap is measured: against the stashed weights, or from the last update."}),
      field(&Staleness::gap_statistics,
            {.name = "staleness.gap_statistics",
             .type = Type::choice,
             .fallback = "corrected",
             .choices = {"corrected", "ftpipe"},
             .half = recipe,
             .help = "Whether the moving averages that scale the gap are corrected for initial "
                     "bias (corrected), or not (ftpipe)."}),
      field(&Staleness::gap_scale,
            {.name = "staleness.gap_scale",
             .type = Type::choice,
             .fallback = "step_ema",
             .choices = {"step_ema", "max_lr"},
             .half = recipe,
             .help = "What a gap is compared with: the moving average of the updates, or an update "
                     "at the peak learning rate."}),
      field(
          &Staleness::gap_factor,
          {.name = "staleness.gap_factor",
           .type = Type::choice,
           .fallback = "none",
           .choices = {"none", "scalar", "max"},
           .half = recipe,
           .help = "Whether a stage's gap also scales the stages before it: not at all, by scaling "
                   "the gradient it sends (scalar), or by the largest of their penalties (max)."}),
      field(&Staleness::second_moment,
            {.name = "staleness.second_moment",
             .type = Type::choice,
             .fallback = "guarded",
             .choices = {"guarded", "frozen"},
             .half = recipe,
             .help = "Second moment in weight prediction for adam and adamw: guarded keeps the "
                     "denominator away from zero; frozen is FTPipe's form and may diverge."}),
      field(&Staleness::synchronous_steps,
            {.name = "staleness.synchronous_steps",
             .fallback = 0,
             .most = most_steps,
             .half = recipe,
             .help = "Number of first steps that run synchronously: the pipeline drains after "
                     "each, so that no gradient is stale (PipeMare's T3)."}),
      field(&Staleness::anneal_steps,
            {.name = "staleness.anneal_steps",
             .fallback = 0,
             .most = most_steps,
             .half = recipe,
             .help = "Steps after synchronous_steps over which the learning rate of stages with "
                     "delayed gradients rises to the full rate (PipeMare's T1)."}),
      field(&Staleness::drift_memory,
            {.name = "staleness.drift_memory",
             .type = Type::number,
             .fallback = 0.135,
             .least = 1e-12,
             .most = 1,
             .half = recipe,
             .help = "With linearize_at = \"extrapolated\": share of the old drift estimate that "
                     "remains after one micro-batch's delay."}),
      field(&Staleness::delay_compensation,
            {.name = "staleness.delay_compensation",
             .type = Type::number,
             .fallback = 0.0,
             .most = 1e3,
             .half = recipe,
             .help = "Factor of g * g * gap that is added to a delayed gradient g (DC-ASGD)."}),
      field(&Staleness::spike_compensation,
            {.name = "staleness.spike_compensation",
             .type = Type::boolean,
             .fallback = false,
             .half = recipe,
             .help = "Apply at once what a delayed gradient would have added in the steps it "
                     "missed. For sgd with momentum."}),
      field(&Staleness::nag, {.name = "staleness.nag",
                              .type = Type::boolean,
                              .fallback = false,
                              .half = recipe,
                              .help = "Predict weights also for passes without delay (Nesterov)."}),
      field(&Staleness::nag_return,
            {.name = "staleness.nag_return",
             .type = Type::boolean,
             .fallback = true,
             .half = recipe,
             .help = "With nag: the backward pass uses the predicted weights of its forward pass, "
                     "not the current weights."}),
      field(&Staleness::clip,
            {.name = "staleness.clip",
             .type = Type::choice,
             .fallback = "local",
             .choices = {"local", "local_sqrt_share"},
             .half = recipe,
             .help = "Limit for the gradient norm of one stage: optimizer.clip_norm (local), or "
                     "clip_norm times the square root of the stage's share of the parameters "
                     "(local_sqrt_share)."}),
      field(&Staleness::step_every,
            {.name = "staleness.step_every",
             .type = Type::count_or_auto,
             .fallback = "auto",
             .least = 1,
             .half = recipe,
             .help = "Micro-batches per replica in one optimizer step; \"auto\" follows from "
                     "batch.global and batch.micro."}),
      field(&Staleness::flush_every,
            {.name = "staleness.flush_every",
             .type = Type::count_or_auto,
             .fallback = "auto",
             .least = 1,
             .most = most_steps,
             .half = recipe,
             .help = "Micro-batches between two drains of the pipeline. A run can resume from a "
                     "drain. \"auto\" is 64 steps."}),
  };
}

}  // namespace troupe::config
