#include "apps/telemetry/run_telemetry.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/digest.h"

namespace troupe::apps {
namespace {

using otlp::attribute;
using Outcome = otlp::Span::Outcome;

std::optional<double> number_told(const Value& event, std::string_view key) {
  const Value* number = event.find(key);
  if (!number || !number->is_number()) return {};
  return number->number();
}

/// Adds a field of an event, if it has it, as "troupe.KEY".
void add_told(otlp::Attributes& attributes, const Value& event, std::string_view key) {
  const Value* value = event.find(key);
  if (value && !value->is_null())
    attributes.push_back(attribute("troupe." + std::string(key), *value));
}

std::string trace_of(const std::string& run, double begun) {
  return to_string(digest_of("run " + run + " of " + std::to_string(otlp::nanoseconds(begun))));
}

}  // namespace

RunTelemetry::RunTelemetry(const Value& first)
    : name_(text_in(first, "run")),
      begun_(number_in(first, "time")),
      trace_(trace_of(name_, begun_)),
      attempt_begun_(begun_) {}

std::string RunTelemetry::id_of(const std::string& what) const {
  constexpr std::size_t digits = 16;
  return to_string(digest_of(trace_ + " " + what)).substr(0, digits);
}

/// Returns the id of the attempt that plays now.
std::string RunTelemetry::attempt_id() const {
  return id_of("attempt " + std::to_string(attempt_ + static_cast<int>(boundaries_.size())));
}

otlp::Span RunTelemetry::span(std::string_view name, const std::string& what,
                              const std::string& parent) const {
  return {.name = name,
          .trace = trace_,
          .id = id_of(what),
          .parent = parent,
          .attributes = {attribute("troupe.run", name_)}};
}

void RunTelemetry::add(const Value& event) {
  counters_.add(event);
  const std::string type = text_in(event, "type");
  if (has_ended()) return;
  if (type == "step") add_step(event);
  if (type == "plan.changed") add_plan(event);
  if (type == "run.recovered") add_recovery(event);
  if (type == "eval") {
    validation_loss_ = number_told(event, "loss");
    add_span_in_attempt("evaluation", event, {"step", "loss"});
  }
  if (type == "checkpoint.saved")
    add_span_in_attempt("save", event, {"step", "directory", "weights"});
  if (type == "run.state") {
    state_ = text_in(event, "state");
    if (has_ended()) add_end(event);
  }
}

void RunTelemetry::add_step(const Value& event) {
  const auto step = integer_in(event, "step");
  // A recovery is told with the first step that is new. Without one the plan changed by a wish.
  if (!boundaries_.empty() && step > boundaries_.front().step + 1) cross_boundaries({});
  if (!step_) attempt_after_ = step - 1;
  step_ = step;
  has_steps_ = true;
  loss_ = number_told(event, "loss");
  goodput_ = number_told(event, "goodput");
}

void RunTelemetry::add_plan(const Value& event) {
  const Value* nodes = event.find("nodes");
  Value names = nodes ? *nodes : Value();
  if (has_steps_) {
    boundaries_.push_back({number_in(event, "time"), step_.value_or(0), std::move(names)});
    has_steps_ = false;
  } else if (!boundaries_.empty()) {
    boundaries_.back().nodes = std::move(names);
  } else {
    attempt_nodes_ = std::move(names);
  }
}

void RunTelemetry::add_recovery(const Value& event) {
  const double time = number_in(event, "time");
  const double lost = std::max(attempt_begun_, time - number_in(event, "seconds"));
  if (boundaries_.empty())
    boundaries_.push_back({time - number_in(event, "redo"),
                           integer_in(event, "step") + integer_in(event, "redone"),
                           {}});
  auto recovery = span("recovery", "recovery " + std::to_string(++children_), id_of("run"));
  recovery.start = lost;
  recovery.end = time;
  for (const char* key : {"why", "from", "step", "redone"})
    add_told(recovery.attributes, event, key);
  for (const char* part : {"freeze", "nodes", "prepare", "load", "redo"})
    if (const auto seconds = number_told(event, part))
      recovery.attributes.push_back(
          attribute("troupe." + std::string(part) + "_seconds", *seconds));
  const auto after = integer_in(event, "step");
  cross_boundaries(Recovered{lost, text_in(event, "why")});
  attempt_after_ = after;
  spans_.push_back(std::move(recovery));
}

/// Ends the attempts before the present one. A loss ended the first of them.
void RunTelemetry::cross_boundaries(const std::optional<Recovered>& recovered) {
  bool is_first = true;
  for (auto& boundary : std::exchange(boundaries_, {})) {
    const bool is_lost = recovered && std::exchange(is_first, false);
    end_attempt(is_lost ? recovered->lost : boundary.time, boundary.step,
                is_lost ? recovered->why : std::string());
    ++attempt_;
    attempt_begun_ = boundary.time;
    attempt_after_ = boundary.step;
    attempt_nodes_ = std::move(boundary.nodes);
  }
}

void RunTelemetry::end_attempt(double time, std::int64_t step, const std::string& failure) {
  const std::string what = "attempt " + std::to_string(attempt_);
  auto attempt = span("attempt", what, id_of("run"));
  attempt.start = attempt_begun_;
  attempt.end = time;
  attempt.attributes.push_back(attribute("troupe.attempt", attempt_));
  attempt.attributes.push_back(attribute("troupe.after_step", attempt_after_));
  attempt.attributes.push_back(attribute("troupe.step", step));
  if (attempt_nodes_.list())
    attempt.attributes.push_back(attribute("troupe.nodes", attempt_nodes_));
  if (!failure.empty()) {
    attempt.outcome = Outcome::error;
    attempt.message = failure;
  }
  spans_.push_back(std::move(attempt));
}

void RunTelemetry::add_span_in_attempt(std::string_view name, const Value& event,
                                       std::initializer_list<std::string_view> told) {
  auto made = span(name, std::string(name) + " " + std::to_string(++children_), attempt_id());
  made.end = number_in(event, "time");
  made.start = std::max(begun_, made.end - number_told(event, "seconds").value_or(0));
  for (const auto key : told) add_told(made.attributes, event, key);
  spans_.push_back(std::move(made));
}

void RunTelemetry::add_end(const Value& event) {
  const double time = number_in(event, "time");
  const std::string why = text_in(event, "why");
  const bool has_failed = state_ == "failed";
  cross_boundaries({});
  end_attempt(time, step_.value_or(0), has_failed ? why : std::string());
  auto run = span("run", "run", {});
  run.start = begun_;
  run.end = time;
  run.attributes.push_back(attribute("troupe.state", state_));
  run.attributes.push_back(attribute("troupe.step", step_.value_or(0)));
  run.attributes.push_back(attribute("troupe.attempts", attempt_));
  add_told(run.attributes, event, "why");
  run.outcome = has_failed ? Outcome::error : state_ == "done" ? Outcome::ok : Outcome::unset;
  if (has_failed) run.message = why;
  spans_.push_back(std::move(run));
}

void RunTelemetry::tell(otlp::Metrics& metrics) const {
  const otlp::Attributes of = {attribute("run", name_)};
  const auto start = otlp::nanoseconds(begun_);
  const auto now = counters_.numbers();
  if (step_) metrics.gauge({"troupe.run.step", "Completed steps of the run.", ""}, of, *step_);
  metrics.gauge({"troupe.run.loss", "Loss of the last step.", ""}, of, loss_);
  metrics.gauge({"troupe.run.validation_loss", "Loss of the last evaluation.", ""}, of,
                validation_loss_);
  metrics.gauge({"troupe.run.goodput", "Share of time spent in steps that count.", ""}, of,
                goodput_);
  metrics.gauge(
      {"troupe.run.rate", "Tokens, or samples if there are none, per second in the last step.", ""},
      of, now.rate);
  metrics.gauge({"troupe.run.gradient_norm", "Norm of the gradient in the last step.", ""}, of,
                now.grad_norm);
  metrics.gauge({"troupe.run.learning_rate", "Learning rate of the last step.", ""}, of, now.lr);
  metrics.gauge(
      {"troupe.run.bubble", "Share of time in which devices waited in the last step.", ""}, of,
      now.bubble);
  metrics.gauge(
      {"troupe.run.memory_bytes", "Greatest memory in use by the devices of the run.", "By"}, of,
      now.memory);
  metrics.gauge(
      {"troupe.run.checkpoint_timestamp_seconds", "When the newest checkpoint was complete.", "s"},
      of, now.saved_at);
  const auto count = [&](const char* name, const char* description, std::int64_t number) {
    metrics.sum({name, description, ""}, of, start, number);
  };
  count("troupe.run.steps_done", "Steps done, repeated ones too.", now.steps);
  count("troupe.run.steps_repeated", "Steps that recoveries repeated.", now.repeated);
  count("troupe.run.seen", "Tokens that were trained on, or samples if there are no tokens.",
        now.seen);
  count("troupe.run.recoveries", "Failures that it has recovered from.", now.recoveries);
  count("troupe.run.checkpoints", "Checkpoints saved.", now.checkpoints);
  count("troupe.run.warnings", "Warnings.", now.warnings);
  metrics.histogram({"troupe.run.step_seconds", "Duration of steps.", "s"}, of, start,
                    now.step_seconds);
  metrics.histogram({"troupe.run.recovery_seconds",
                     "Time from a failure until the run has one step more than before it.", "s"},
                    of, start, now.recovery_seconds);
  metrics.histogram({"troupe.run.save_seconds",
                     "Time until a checkpoint was complete, while training went on.", "s"},
                    of, start, now.save_seconds);
  for (const auto& [ends, waits] : now.link_waits) {
    auto of_link = of;
    of_link.push_back(attribute("from", ends.first));
    of_link.push_back(attribute("to", ends.second));
    metrics.histogram(
        {"troupe.run.link_wait_seconds",
         "Time in a step in which devices of a node waited for tensors of another node.", "s"},
        of_link, now.planned_at ? otlp::nanoseconds(*now.planned_at) : start, waits);
  }
}

}  // namespace troupe::apps
