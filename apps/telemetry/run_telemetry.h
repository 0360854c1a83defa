#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/events/run_counters.h"
#include "apps/events/run_end.h"
#include "apps/telemetry/otlp_json.h"
#include "core/value.h"

namespace troupe::apps {

/// The numbers and the trace of a run for a collector, made from its events. The run is the root of
/// the trace. Its attempts and recoveries are below it, and saves and evaluations below
/// their attempts. Ids follow from the name of the run and the time of its first event.
class RunTelemetry {
 public:
  /// Takes the first event that the run's process tells.
  explicit RunTelemetry(const Value& first);

  void add(const Value& event);
  bool has_ended() const { return has_run_ended(state_); }

  /// Returns the spans that have ended since the last call.
  std::vector<otlp::Span> take_spans() { return std::exchange(spans_, {}); }
  /// Adds the present numbers.
  void tell(otlp::Metrics& metrics) const;

 private:
  /// The end of an attempt by a new plan. Whether a loss or a wish is the reason is known later.
  struct Boundary {
    double time = 0;
    std::int64_t step = 0;
    Value nodes;  // The nodes of the new plan.
  };
  struct Recovered {
    double lost = 0;  // When the loss was noticed.
    std::string why;
  };

  void add_step(const Value& event);
  void add_plan(const Value& event);
  void add_recovery(const Value& event);
  void add_end(const Value& event);
  void cross_boundaries(const std::optional<Recovered>& recovered);
  void end_attempt(double time, std::int64_t step, const std::string& failure);
  void add_span_in_attempt(std::string_view name, const Value& event,
                           std::initializer_list<std::string_view> told);
  otlp::Span span(std::string_view name, const std::string& what, const std::string& parent) const;
  std::string id_of(const std::string& what) const;
  std::string attempt_id() const;

  const std::string name_;
  const double begun_;
  const std::string trace_;
  std::vector<otlp::Span> spans_;
  int children_ = 0;  // Recoveries, saves and evaluations so far.

  int attempt_ = 1;
  double attempt_begun_;
  std::int64_t attempt_after_ = 0;  // The steps done before it.
  Value attempt_nodes_;
  bool has_steps_ = false;  // Since the last boundary.
  std::vector<Boundary> boundaries_;

  RunCounters counters_;
  std::string state_;
  std::optional<std::int64_t> step_;
  std::optional<double> loss_, goodput_, validation_loss_;
};

}  // namespace troupe::apps
