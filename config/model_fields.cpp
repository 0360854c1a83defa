#include <string_view>
#include <utility>
#include <vector>

#include "config/keys.h"
#include "config/rate_changes.h"
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
  constexpr std::string_view lr = "The learning rate at its height.";
  constexpr std::string_view momentum = "How much of the last update stays in the next.";
  constexpr std::string_view nesterov = "Whether the momentum looks a step ahead.";
  constexpr std::string_view decay =
      "How fast weights shrink: as part of the gradient (sgd, adam) or beside it (the others).";
  const Value two_betas = Value::List{0.9, 0.999};
  return {
      field(&Optimizer::kind, {.name = "optimizer.kind",
                               .type = Type::choice,
                               .fallback = "adamw",
                               .choices = {"sgd", "adam", "adamw", "nadamw", "muon"},
                               .half = recipe,
                               .help = "How gradients become the next weights."}),
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
      // The check of agreement complains about a text that cannot be read.
      {{.name = "optimizer.changes",
        .type = Type::text,
        .half = recipe,
        .help = "Other values of optimizer.lr, each after so many steps: \"1e-3 from 120, 5e-4 "
                "from 200\". `troupe set` adds to them."},
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
             .help = "Whether the learning rate multiplies the momentum, or each gradient before "
                     "it goes in, so that a change of the rate leaves the momentum as it is.",
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
        .help = "How slowly the first and the second moment change; of muon: for what is no hidden "
                "matrix.",
        .when = with_betas},
       [](const Value& value, Optimizer& into) {
         into.beta1 = (*value.list())[0].number();
         into.beta2 = (*value.list())[1].number();
       }},
      field(&Optimizer::eps, {.name = "optimizer.eps",
                              .type = Type::number,
                              .fallback = 1e-8,
                              .most = 1,
                              .half = recipe,
                              .help = "Added to the denominator.",
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
      field(
          &Optimizer::clip_norm,
          {.name = "optimizer.clip_norm",
           .type = Type::number,
           .least = 1e-12,
           .half = recipe,
           .help =
               "The longest that the gradient of the whole model may be; without it any length."}),
      rate(&Rate::kind, {.name = "optimizer.schedule.kind",
                         .type = Type::choice,
                         .fallback = "constant",
                         .choices = {"constant", "linear", "cosine"},
                         .half = recipe,
                         .help = "How the learning rate goes from lr to min_lr: not at all, by a "
                                 "line, by half a cosine."}),
      rate(&Rate::warmup_steps, {.name = "optimizer.schedule.warmup_steps",
                                 .fallback = 0,
                                 .most = most_steps,
                                 .half = recipe,
                                 .help = "Steps in which the learning rate rises to lr: step k has "
                                         "lr * (k + 1) / warmup_steps."}),
      // "auto" is train.steps, which is another struct's.
      {{.name = "optimizer.schedule.total_steps",
        .type = Type::count_or_auto,
        .fallback = "auto",
        .least = 1,
        .most = most_steps,
        .half = recipe,
        .help = "The step at which min_lr is reached; \"auto\" is train.steps."},
       [](const Value& value, Optimizer& into) {
         if (const auto* steps = value.integer()) into.rate.total_steps = *steps;
       }},
      rate(&Rate::min_lr, {.name = "optimizer.schedule.min_lr",
                           .type = Type::number,
                           .fallback = 0.0,
                           .most = 1e3,
                           .half = recipe,
                           .help = "The learning rate at the end."}),
  };
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
        .help = "Sets predict, linearize_at and gap_penalty, where these are not written."},
       {}},
      field(&Staleness::predict, {.name = "staleness.predict",
                                  .type = Type::choice,
                                  .fallback = "none",
                                  .choices = {"none", "msnag", "aggmsnag", "linear"},
                                  .half = recipe,
                                  .help = "Which weights a forward pass sees: the newest, or what "
                                          "they will probably be when its gradient comes."}),
      field(&Staleness::linearize_at,
            {.name = "staleness.linearize_at",
             .type = Type::choice,
             .fallback = "current",
             .choices = {"current", "forward", "extrapolated"},
             .half = recipe,
             .help = "Which weights a backward pass sees: the newest, those of its forward pass "
                     "(weight stashing), or what their drift tells of those (PipeMare's T2)."}),
      field(&Staleness::gap_penalty,
            {.name = "staleness.gap_penalty",
             .type = Type::choice,
             .fallback = "none",
             .choices = {"none", "elementwise", "tensor_norm"},
             .half = recipe,
             .help = "Whether a gradient counts less, the further the weights have moved since its "
                     "forward pass: each by its own, or all of a tensor alike."}),
      field(&Staleness::gap_source,
            {.name = "staleness.gap_source",
             .type = Type::choice,
             .fallback = "stash",
             .choices = {"stash", "last_update"},
             .half = recipe,
             .help = "What the gap is measured by: the old weights, or the last update."}),
      field(&Staleness::gap_statistics,
            {.name = "staleness.gap_statistics",
             .type = Type::choice,
             .fallback = "corrected",
             .choices = {"corrected", "ftpipe"},
             .half = recipe,
             .help = "Whether the averages that scale the gap are corrected for their start."}),
      field(&Staleness::gap_scale, {.name = "staleness.gap_scale",
                                    .type = Type::choice,
                                    .fallback = "step_ema",
                                    .choices = {"step_ema", "max_lr"},
                                    .half = recipe,
                                    .help = "What a gap is compared with: the usual update, or one "
                                            "at the highest learning rate."}),
      field(&Staleness::gap_factor,
            {.name = "staleness.gap_factor",
             .type = Type::choice,
             .fallback = "none",
             .choices = {"none", "scalar", "max"},
             .half = recipe,
             .help = "Whether a stage's gap counts for the stages before it: by a smaller gradient "
                     "that it sends, or by the largest of their penalties."}),
      field(&Staleness::second_moment,
            {.name = "staleness.second_moment",
             .type = Type::choice,
             .fallback = "guarded",
             .choices = {"guarded", "frozen"},
             .half = recipe,
             .help = "Whether a prediction for adam or adamw guards its denominator; frozen is "
                     "FTPipe's, and may explode."}),
      field(&Staleness::synchronous_steps,
            {.name = "staleness.synchronous_steps",
             .fallback = 0,
             .most = most_steps,
             .half = recipe,
             .help = "The first steps of a run, after each of which the pipeline drains, so that "
                     "no weight is stale (PipeMare's T3)."}),
      field(&Staleness::anneal_steps,
            {.name = "staleness.anneal_steps",
             .fallback = 0,
             .most = most_steps,
             .half = recipe,
             .help = "Steps after those in which the learning rate of a late stage rises to that "
                     "of the others (PipeMare's T1)."}),
      field(&Staleness::drift_memory,
            {.name = "staleness.drift_memory",
             .type = Type::number,
             .fallback = 0.135,
             .least = 1e-12,
             .most = 1,
             .half = recipe,
             .help = "With linearize_at = \"extrapolated\": what the drift still knows, after a "
                     "micro-batch's delay, of what was before."}),
      field(&Staleness::delay_compensation,
            {.name = "staleness.delay_compensation",
             .type = Type::number,
             .fallback = 0.0,
             .most = 1e3,
             .half = recipe,
             .help = "How much of g * g * gap is added to a late gradient g (DC-ASGD)."}),
      field(&Staleness::spike_compensation,
            {.name = "staleness.spike_compensation",
             .type = Type::boolean,
             .fallback = false,
             .half = recipe,
             .help = "Whether a late gradient makes up at once for the steps it missed; for sgd "
                     "with momentum."}),
      field(&Staleness::nag,
            {.name = "staleness.nag",
             .type = Type::boolean,
             .fallback = false,
             .half = recipe,
             .help = "Whether a pass without delay looks ahead as well (Nesterov)."}),
      field(&Staleness::nag_return, {.name = "staleness.nag_return",
                                     .type = Type::boolean,
                                     .fallback = true,
                                     .half = recipe,
                                     .help = "Whether the backward half of such a pass sees the "
                                             "same point, not the true weights."}),
      field(&Staleness::clip,
            {.name = "staleness.clip",
             .type = Type::choice,
             .fallback = "local",
             .choices = {"local", "local_sqrt_share"},
             .half = recipe,
             .help = "What bounds the norm of a stage's own gradient: the whole of "
                     "optimizer.clip_norm, or the root of its share of the parameters of it."}),
      field(&Staleness::step_every,
            {.name = "staleness.step_every",
             .type = Type::count_or_auto,
             .fallback = "auto",
             .least = 1,
             .half = recipe,
             .help =
                 "Micro-batches of a replica in one optimizer step; \"auto\" follows from batch."}),
      field(&Staleness::flush_every,
            {.name = "staleness.flush_every",
             .type = Type::count_or_auto,
             .fallback = "auto",
             .least = 1,
             .most = most_steps,
             .half = recipe,
             .help = "Micro-batches after which the pipeline drains, where a run can be taken up "
                     "again; \"auto\" is 64 steps."}),
  };
}

}  // namespace troupe::config
