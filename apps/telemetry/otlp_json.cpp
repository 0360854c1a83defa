#include "apps/telemetry/otlp_json.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/json.h"

namespace troupe::apps::otlp {
namespace {

constexpr int internal_span = 1;
constexpr int cumulative = 2;

std::string whole(std::int64_t number) { return std::to_string(number); }

Value any_value(const Value& value) {
  Value held = Value::Map{};
  if (const auto* text = value.text()) held.set("stringValue", *text);
  if (const auto* yes = value.boolean()) held.set("boolValue", *yes);
  if (const auto* number = value.integer())
    held.set("intValue", whole(*number));
  else if (value.is_number())
    held.set("doubleValue", value.number());
  if (const auto* list = value.list()) {
    Value::List values;
    for (const auto& one : *list) values.push_back(any_value(one));
    Value array;
    array.set("values", std::move(values));
    held.set("arrayValue", std::move(array));
  }
  return held;
}

/// Returns resourceNAME[{resource, scopeNAME[{scope, NAME[...]}]}].
Value request(const Attributes& resource, const std::string& name, Value::List content) {
  const std::string of = static_cast<char>(name[0] - 'a' + 'A') + name.substr(1);
  Value scope;
  scope.set("name", "troupe");
  Value scoped;
  scoped.set("scope", std::move(scope));
  scoped.set(name, std::move(content));
  Value about;
  about.set("attributes", resource);
  Value of_resource;
  of_resource.set("resource", std::move(about));
  of_resource.set("scope" + of, Value::List{std::move(scoped)});
  Value whole_request;
  whole_request.set("resource" + of, Value::List{std::move(of_resource)});
  return whole_request;
}

}  // namespace

std::int64_t nanoseconds(double seconds) {
  // Events have microseconds.
  return static_cast<std::int64_t>(std::llround(seconds * 1e6)) * 1000;
}

Value attribute(std::string_view key, const Value& value) {
  Value attribute;
  attribute.set("key", key);
  attribute.set("value", any_value(value));
  return attribute;
}

Value to_value(const Span& span) {
  Value value;
  value.set("traceId", span.trace);
  value.set("spanId", span.id);
  if (!span.parent.empty()) value.set("parentSpanId", span.parent);
  value.set("name", span.name);
  value.set("kind", internal_span);
  value.set("startTimeUnixNano", whole(nanoseconds(span.start)));
  value.set("endTimeUnixNano", whole(nanoseconds(std::max(span.start, span.end))));
  value.set("attributes", span.attributes);
  Value status = Value::Map{};
  if (span.outcome != Span::Outcome::unset) status.set("code", static_cast<int>(span.outcome));
  if (!span.message.empty()) status.set("message", span.message);
  value.set("status", std::move(status));
  return value;
}

Value Metrics::point(const Attributes& of, std::optional<std::int64_t> start) const {
  Value point;
  point.set("attributes", of);
  if (start) point.set("startTimeUnixNano", whole(*start));
  point.set("timeUnixNano", whole(now_));
  return point;
}

void Metrics::add(const Kind& kind, std::string_view data, bool is_cumulative, Value point) {
  for (auto& metric : metrics_)
    if (*metric.find("name")->text() == kind.name)
      return metric.find(data)->find("dataPoints")->list()->push_back(std::move(point));
  Value points;
  points.set("dataPoints", Value::List{std::move(point)});
  if (is_cumulative) points.set("aggregationTemporality", cumulative);
  if (data == "sum") points.set("isMonotonic", true);
  Value metric;
  metric.set("name", kind.name);
  metric.set("description", kind.description);
  metric.set("unit", kind.unit);
  metric.set(std::string(data), std::move(points));
  metrics_.push_back(std::move(metric));
}

void Metrics::gauge(const Kind& kind, const Attributes& of, std::optional<double> number) {
  if (!number || !std::isfinite(*number)) return;
  auto value = point(of, {});
  value.set("asDouble", *number);
  add(kind, "gauge", false, std::move(value));
}

void Metrics::gauge(const Kind& kind, const Attributes& of, std::int64_t number) {
  auto value = point(of, {});
  value.set("asInt", whole(number));
  add(kind, "gauge", false, std::move(value));
}

void Metrics::sum(const Kind& kind, const Attributes& of, std::int64_t start, std::int64_t number) {
  auto value = point(of, start);
  value.set("asInt", whole(number));
  add(kind, "sum", true, std::move(value));
}

void Metrics::histogram(const Kind& kind, const Attributes& of, std::int64_t start,
                        const Histogram& histogram) {
  auto value = point(of, start);
  value.set("count", whole(histogram.count));
  value.set("sum", histogram.sum);
  Value::List counts, bounds;
  std::int64_t above = histogram.count;
  for (std::size_t i = 0; i < histogram.bounds.size(); ++i) {
    counts.emplace_back(whole(histogram.counts[i]));
    bounds.emplace_back(histogram.bounds[i]);
    above -= histogram.counts[i];
  }
  counts.emplace_back(whole(above));
  value.set("bucketCounts", std::move(counts));
  value.set("explicitBounds", std::move(bounds));
  add(kind, "histogram", true, std::move(value));
}

Value metrics_request(const Attributes& resource, Value::List metrics) {
  return request(resource, "metrics", std::move(metrics));
}

Value traces_request(const Attributes& resource, Value::List spans) {
  return request(resource, "spans", std::move(spans));
}

}  // namespace troupe::apps::otlp
