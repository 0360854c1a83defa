#include <algorithm>
#include <optional>

#include "config/agreement.h"
#include "config/schema.h"
#include "config/toml/toml.h"
#include "schedules/generators/registry.h"

namespace troupe::config {
namespace {

using std::to_string;
using Staleness = RunConfig::Staleness;

std::string written(const Examined& examined, std::string_view key) {
  return std::string(key) + " = " + to_toml(*value_at(examined.tree, key));
}

/// Returns a replica's micro-batches per optimizer step, or nothing if the number is still open.
std::optional<std::int64_t> step_every(const RunConfig& config) {
  if (config.staleness.step_every) return *config.staleness.step_every;
  if (!config.batch.micro) return {};
  const std::int64_t piece = *config.batch.micro * config.pipeline.replicas.value_or(1);
  return std::max<std::int64_t>(1, config.batch.global / piece);
}

void check_step(const Examined& examined) {
  const RunConfig& config = examined.config;
  const auto every = config.staleness.step_every;
  if (!every || !config.batch.micro) return;
  const int replicas = config.pipeline.replicas.value_or(1);
  const std::int64_t piece = *config.batch.micro * replicas;
  const std::int64_t samples = *every * piece;
  if (samples == config.batch.global) return;
  std::string remedy = "batch.global = " + to_string(samples);
  if (config.batch.global % piece == 0)
    remedy = "staleness.step_every = " + to_string(config.batch.global / piece) + ", or " + remedy;
  examined.error({"staleness.step_every", "batch.global"},
                 "staleness.step_every = " + to_string(*every) +
                     " x batch.micro = " + to_string(*config.batch.micro) +
                     " x replicas = " + to_string(replicas) + " (= " + to_string(samples) +
                     ") is not batch.global = " + to_string(config.batch.global) + "; set " +
                     remedy);
}

/// Warns of keys that have no effect because no weights are stale. With one stage `staleness.nag`
/// still looks ahead, so a prediction has an effect.
void warn_of_idle_keys(const Examined& examined, const std::string& why, bool nag_is_idle) {
  const auto& staleness = examined.config.staleness;
  const auto warn = [&](std::string_view key) {
    examined.warn({key}, written(examined, key) + " has no effect: " + why);
  };
  if (staleness.predict != Staleness::Predict::none && (nag_is_idle || !staleness.nag))
    warn("staleness.predict");
  if (staleness.linearize_at != Staleness::LinearizeAt::current) warn("staleness.linearize_at");
  if (staleness.gap_penalty != Staleness::GapPenalty::none) warn("staleness.gap_penalty");
  if (staleness.gap_factor != Staleness::GapFactor::none) warn("staleness.gap_factor");
  if (staleness.delay_compensation > 0) warn("staleness.delay_compensation");
  if (staleness.spike_compensation) warn("staleness.spike_compensation");
  if (staleness.synchronous_steps > 0) warn("staleness.synchronous_steps");
  if (staleness.anneal_steps > 0) warn("staleness.anneal_steps");
}

bool knows_gaps(const Staleness& staleness) {
  return staleness.gap_penalty != Staleness::GapPenalty::none ||
         staleness.gap_factor != Staleness::GapFactor::none;
}

/// Returns the key that requests a correction for gaps.
std::string_view gap_key(const Staleness& staleness) {
  return staleness.gap_penalty != Staleness::GapPenalty::none ? "staleness.gap_penalty"
                                                              : "staleness.gap_factor";
}

void check_prediction(const Examined& examined) {
  const auto& config = examined.config;
  const auto& staleness = config.staleness;
  using Optimizer = models::OptimizerConfig::Kind;
  const bool is_known = config.optimizer.kind == Optimizer::sgd ||
                        config.optimizer.kind == Optimizer::adam ||
                        config.optimizer.kind == Optimizer::adamw;
  if (staleness.predict != Staleness::Predict::none && !is_known)
    examined.error({"staleness.predict", "optimizer.kind"},
                   written(examined, "staleness.predict") + " cannot predict the weights of " +
                       written(examined, "optimizer.kind") + "; it supports sgd, adam and adamw");
  if (knows_gaps(staleness) && !is_known)
    examined.error({gap_key(staleness), "optimizer.kind"},
                   written(examined, gap_key(staleness)) + " does not support " +
                       written(examined, "optimizer.kind") + "; it supports sgd, adam and adamw");
  if (*value_at(examined.tree, "staleness.predict")->text() == "aggmsnag" &&
      config.pipeline.replicas.value_or(1) > 1)
    examined.warn({"staleness.predict", "pipeline.replicas"},
                  "staleness.predict = \"aggmsnag\" needs gradients from pipeline.replicas = " +
                      to_string(*config.pipeline.replicas) + "; msnag is used instead");
  if (staleness.nag && staleness.predict == Staleness::Predict::none)
    examined.error({"staleness.nag"},
                   "staleness.nag needs a prediction, but staleness.predict = \"none\"");
  if (staleness.spike_compensation &&
      (config.optimizer.kind != Optimizer::sgd || config.optimizer.momentum == 0))
    examined.error({"staleness.spike_compensation", "optimizer.kind", "optimizer.momentum"},
                   "staleness.spike_compensation compensates missed momentum, but " +
                       written(examined, "optimizer.kind") +
                       (config.optimizer.kind == Optimizer::sgd ? " has optimizer.momentum = 0"
                                                                : " has none of sgd's"));
}

/// Rejects gap_source = "last_update" with a prediction, whose gap the last update does not show.
void check_last_update(const Examined& examined) {
  if (examined.config.staleness.predict != Staleness::Predict::none)
    examined.error({"staleness.gap_source", "staleness.predict"},
                   "staleness.gap_source = \"last_update\" tells how far the weights went, but " +
                       written(examined, "staleness.predict") +
                       " lets a pass see others; use staleness.gap_source = \"stash\"");
}

/// Returns whether any stage but the last, where nothing is late, keeps activations.
bool keeps_late_activations(const RunConfig& config, int stages) {
  bool keeps = false;
  for (int stage = 0; stage + 1 < stages; ++stage) keeps |= !config.pipeline.recompute.in(stage);
  return keeps;
}

void check_compensation(const Examined& examined) {
  const auto& staleness = examined.config.staleness;
  if (staleness.delay_compensation == 0) return;
  if (staleness.gap_penalty != Staleness::GapPenalty::none)
    examined.error({"staleness.delay_compensation", "staleness.gap_penalty"},
                   written(examined, "staleness.delay_compensation") + " and " +
                       written(examined, "staleness.gap_penalty") +
                       " both correct a gradient for the same gap; use one of them");
  if (staleness.gap_source == Staleness::GapSource::last_update)
    examined.error({"staleness.gap_source", "staleness.delay_compensation"},
                   "staleness.delay_compensation measures the gap by the old weights; use "
                   "staleness.gap_source = \"stash\"");
}

/// Rejects remedies that are not linear in the gradient: how many targets of a step count is known
/// only when its last gradient is there.
void check_counts(const Examined& examined) {
  const auto& staleness = examined.config.staleness;
  const auto& model = examined.config.model;
  if (!model.may_ignore()) return;
  const std::string open = model.options.find("loss")
                               ? "model.loss.ignore leaves open; leave one of them out"
                               : "the loss of " + model.kind + " leaves open; leave it out";
  const auto refuse = [&](std::string_view key, const std::string& what) {
    examined.error({key, "model.loss.ignore"},
                   written(examined, key) + " " + what +
                       " before it is known how many targets of a step count, which " + open);
  };
  if (staleness.delay_compensation > 0) refuse("staleness.delay_compensation", "squares gradients");
  if (staleness.predict == Staleness::Predict::aggmsnag)
    refuse("staleness.predict", "steps ahead by gradients");
}

void check_gap(const Examined& examined, int stages) {
  const auto& config = examined.config;
  const auto& staleness = config.staleness;
  if (!knows_gaps(staleness)) return;
  if (staleness.linearize_at != Staleness::LinearizeAt::forward && staleness.lag == 0 &&
      keeps_late_activations(config, stages))
    examined.error({gap_key(staleness), "staleness.linearize_at", "pipeline.recompute"},
                   written(examined, gap_key(staleness)) + " with " +
                       written(examined, "staleness.linearize_at") +
                       " needs activations of the newest weights, but " +
                       written(examined, "pipeline.recompute") +
                       " keeps old ones; set pipeline.recompute = true, or "
                       "staleness.linearize_at = \"forward\"");
  if (staleness.gap_source == Staleness::GapSource::last_update) check_last_update(examined);
  const auto every = step_every(config);
  if (staleness.gap_source != Staleness::GapSource::last_update || !every) return;
  const std::int64_t delay = (stages - 1 + *every - 1) / *every;
  if (delay > 1)
    examined.error({"staleness.gap_source", "staleness.step_every", "pipeline.stages"},
                   "staleness.gap_source = \"last_update\" knows one update, but with "
                   "pipeline.stages = " +
                       to_string(stages) + " and a step every " + to_string(*every) +
                       " micro-batches the first stage is " + to_string(delay) +
                       " behind; use at most " + to_string(*every + 1) +
                       " stages, or staleness.gap_source = \"stash\"");
}

void check_two_versions(const Examined& examined, int stages) {
  const auto& staleness = examined.config.staleness;
  const auto conflicts = [&](std::string_view key) {
    examined.error({key, "pipeline.schedule"},
                   written(examined, key) +
                       " chooses the weights of a pass, but under pipeline.schedule = "
                       "\"pipedream-2bw\" all passes see the version before the newest; use "
                       "\"pipedream\"");
  };
  if (staleness.predict != Staleness::Predict::none) conflicts("staleness.predict");
  if (staleness.linearize_at == Staleness::LinearizeAt::extrapolated)
    conflicts("staleness.linearize_at");
  const auto every = step_every(examined.config);
  if (!every || *every >= stages - 1) return;
  examined.error({"pipeline.schedule", "staleness.step_every"},
                 "pipeline.schedule = \"pipedream-2bw\" keeps two versions of the weights, which "
                 "takes a step every " +
                     to_string(stages - 1) + " micro-batches or more with pipeline.stages = " +
                     to_string(stages) + ", but it is every " + to_string(*every) +
                     "; enlarge batch.global / batch.micro, or use \"pipedream\"");
}

void check_flush(const Examined& examined) {
  const auto flush = examined.config.staleness.flush_every;
  const auto every = step_every(examined.config);
  if (!flush || !every || *flush % *every == 0) return;
  examined.error({"staleness.flush_every", "staleness.step_every"},
                 "staleness.flush_every = " + to_string(*flush) +
                     " micro-batches are not a whole number of steps of " + to_string(*every) +
                     "; nearest: " + nearest_multiples(*flush, *every));
}

}  // namespace

void check_staleness(const Examined& examined) {
  const auto& pipeline = examined.config.pipeline;
  check_step(examined);
  const auto* schedule = schedules::find_schedule(pipeline.schedule);
  if (!schedule) return;  // A file or "auto" is checked when it is read or chosen.
  if (schedule->mode == schedules::Mode::synchronous)
    return warn_of_idle_keys(
        examined,
        "the schedule \"" + pipeline.schedule + "\" is synchronous, so no weight is stale", true);
  check_prediction(examined);
  check_flush(examined);
  const auto refuse_auto = [&](const std::string& key, const std::string& what) {
    examined.error({key, "pipeline.schedule"},
                   key + " = \"auto\" does not work with the asynchronous schedule \"" +
                       pipeline.schedule + "\": how many " + what +
                       " there are decides how stale their weights are, so it must not depend on "
                       "the cluster; write a number");
  };
  if (!pipeline.replicas) refuse_auto("pipeline.replicas", "replicas");
  if (!pipeline.stages.count) return refuse_auto("pipeline.stages", "stages");
  const int stages = *pipeline.stages.count;
  if (stages == 1) warn_of_idle_keys(examined, "with one stage no weight is stale", false);
  check_gap(examined, stages);
  check_compensation(examined);
  check_counts(examined);
  if (schedule->name == "pipedream-2bw") check_two_versions(examined, stages);
}

}  // namespace troupe::config
