#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/events/run_counters.h"
#include "core/value.h"

/// The JSON of OTLP, the protocol of OpenTelemetry: 64-bit integers are texts, and ids are
/// hexadecimal.
namespace troupe::apps::otlp {

/// A time in nanoseconds since 1970, from one in seconds.
std::int64_t nanoseconds(double seconds);

/// Returns an attribute. The value is a text, a boolean, a number or a list of those.
Value attribute(std::string_view key, const Value& value);
using Attributes = Value::List;

/// A piece of work that has ended. Times are in seconds since 1970.
struct Span {
  std::string_view name;
  std::string trace;   // 32 hexadecimal digits.
  std::string id;      // 16 hexadecimal digits.
  std::string parent;  // The id of the span above; empty for a root.
  double start = 0;
  double end = 0;
  Attributes attributes;
  enum class Outcome : std::uint8_t { unset = 0, ok = 1, error = 2 } outcome = Outcome::unset;
  std::string message = {};  // Why it failed.
};
Value to_value(const Span& span);

/// Collects the metrics of several runs: a metric has a point for each run.
class Metrics {
 public:
  struct Kind {
    std::string_view name;  // "troupe.run.loss"
    std::string_view description;
    std::string_view unit;  // "s", "By", or empty.
  };
  explicit Metrics(std::int64_t now) : now_(now) {}

  /// Does nothing if the number is absent or not finite.
  void gauge(const Kind& kind, const Attributes& of, std::optional<double> number);
  void gauge(const Kind& kind, const Attributes& of, std::int64_t number);
  /// Adds what has been counted since `start`.
  void sum(const Kind& kind, const Attributes& of, std::int64_t start, std::int64_t number);
  void histogram(const Kind& kind, const Attributes& of, std::int64_t start,
                 const Histogram& histogram);

  bool empty() const { return metrics_.empty(); }
  Value::List take() { return std::move(metrics_); }

 private:
  Value point(const Attributes& of, std::optional<std::int64_t> start) const;
  void add(const Kind& kind, std::string_view data, bool is_cumulative, Value point);

  const std::int64_t now_;
  Value::List metrics_;
};

/// Return the body of a request. `resource` describes this process.
Value metrics_request(const Attributes& resource, Value::List metrics);
Value traces_request(const Attributes& resource, Value::List spans);

}  // namespace troupe::apps::otlp
