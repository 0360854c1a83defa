#include "actors/lead/step_event.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "core/units.h"

namespace troupe::actors {
namespace {

/// Returns the staleness of each stage, or an empty list if nobody measures it.
Value::List lateness_of(const StepLedger::Entry& entry) {
  Value::List stages;
  for (std::size_t stage = 0; stage < entry.late.size(); ++stage) {
    if (!entry.late[stage]) continue;
    const auto& metrics = *entry.late[stage];
    Value::List delays;
    for (const int count : metrics.delays) delays.emplace_back(count);
    Value told;
    told.set("stage", static_cast<int>(stage));
    told.set("delays", std::move(delays));
    told.set("gap", metrics.gap);
    told.set("prediction_error", metrics.prediction_error);
    told.set("penalty_mean", metrics.penalty_mean);
    told.set("penalty_most", metrics.penalty_most);
    stages.push_back(std::move(told));
  }
  return stages;
}

}  // namespace

Value run_event(const RunSpec& spec, transport::MessageName type) {
  Value value;
  value.set("type", type.text());
  value.set("run", spec.name);
  return value;
}

namespace {

/// Returns the memory of all devices, or nothing if some are in other processes.
std::optional<std::int64_t> peak_memory(const RunSpec& spec) {
  std::size_t memory = 0;
  for (auto* executor : spec.executors) {
    if (!executor) return {};
    memory += executor->memory().counters().peak_in_use;
  }
  return static_cast<std::int64_t>(memory);
}

/// Returns the share of the round in which each device computed, in per cent.
Value::List busy_shares(const RoundUnderWay& round) {
  Value::List shares;
  for (const auto computing : round.computing)
    shares.emplace_back(
        std::int64_t{std::llround(100 * in_seconds(computing) / in_seconds(round.longest))});
  return shares;
}

}  // namespace

Value step_event(const RunSpec& spec, const StepReport& report) {
  const auto& [step, entry, round, took, goodput, waits] = report;
  const double seconds = in_seconds(took);
  const auto tokens = std::max<std::int64_t>(1, spec.tokens_in_sample);
  Value told = run_event(spec, "step");
  told.set("step", step);
  const bool is_left_out = spec.leaves_out(step);
  if (const double loss = entry->losses.mean(); std::isfinite(loss)) told.set("loss", loss);
  if (spec.model->may_leave_out()) told.set("counted", entry->losses.counted());
  if (!entry->done->is_skipped) told.set("grad_norm", entry->gradient_norm(spec.clip));
  if (const auto penalised = entry->penalised_norm(spec.clip))
    told.set("grad_norm_penalised", *penalised);
  if (spec.loss_scaling.is_on()) told.set("loss_scale", entry->done->loss_scale);
  if (spec.loss_scaling.is_on() || spec.model->may_leave_out() || is_left_out)
    told.set("skipped", entry->done->is_skipped);
  told.set("lr", spec.optimizer.rate.at(step - 1));
  told.set("samples", step * spec.samples_in_step);
  if (spec.tokens_in_sample > 0) told.set("tokens", step * spec.samples_in_step * tokens);
  told.set("seconds", seconds);
  if (seconds > 0) told.set("rate", static_cast<double>(spec.samples_in_step * tokens) / seconds);
  if (round && round->devices() > 1 && round->longest.count() > 0) {
    told.set("bubble",
             1 - in_seconds(round->busy) / (in_seconds(round->longest) * round->devices()));
    told.set("busy", busy_shares(*round));
  }
  if (round && round->busiest.count() > 0)
    told.set("computing", in_seconds(round->busiest) / round->play.round->steps);
  told.set("goodput", std::round(goodput * 10'000) / 10'000);
  if (const auto memory = peak_memory(spec)) told.set("memory", *memory);
  if (!waits.empty()) told.set("waits", waits);
  if (auto late = lateness_of(*entry); !late.empty()) told.set("staleness", std::move(late));
  return told;
}

}  // namespace troupe::actors
