#include "apps/telemetry/otlp_exporter.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>
#include <vector>

#include "core/json.h"
#include "core/threads/thread_name.h"

namespace troupe::apps {
namespace {

constexpr auto longest_pause = std::chrono::seconds(60);

std::int64_t wall_nanoseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

/// The statuses after which OTLP allows to send the same request again.
bool may_retry(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

/// Returns a count that JSON has as a number or a text.
std::int64_t count_in(const Value& map, std::string_view key) {
  const Value* count = map.find(key);
  if (!count) return 0;
  if (const auto* text = count->text()) return std::strtoll(text->c_str(), nullptr, 10);
  return count->integer() ? *count->integer() : 0;
}

}  // namespace

OtlpExporter::OtlpExporter(OtlpOptions options, std::function<void(const std::string&)> say)
    : options_(std::move(options)), say_(std::move(say)), thread_([this] { run(); }) {}

OtlpExporter::~OtlpExporter() { finish(); }

void OtlpExporter::tell(const Value& event) {
  const std::string name = text_in(event, "run");
  if (name.empty()) return;
  const std::lock_guard lock(mutex_);
  if (ends_) return;
  auto& run = runs_[name];
  const bool begins_anew = run && run->has_ended() && text_in(event, "state") == "running";
  if (begins_anew) std::erase(ended_, name);
  if (!run || begins_anew) run = std::make_unique<RunTelemetry>(event);
  const bool had_ended = run->has_ended();
  run->add(event);
  for (auto& span : run->take_spans()) {
    if (spans_.size() < most_spans)
      spans_.push_back(std::move(span));
    else
      ++dropped_spans_;
  }
  if (!run->has_ended() || had_ended) return;
  ended_.push_back(name);
  drop_ended_runs(most_ended_runs);
}

void OtlpExporter::drop_ended_runs(std::size_t most) {
  for (; ended_.size() > most; ended_.pop_front()) runs_.erase(ended_.front());
}

void OtlpExporter::finish() {
  {
    const std::lock_guard lock(mutex_);
    if (!ends_) end_by_ = Clock::now() + options_.limit;
    ends_ = true;
  }
  bell_.ring();
  if (thread_.joinable()) thread_.join();
}

void OtlpExporter::run() {
  name_thread("otlp");
  auto next = Clock::now() + options_.period;
  for (;;) {
    bool ends = false;
    {
      const std::lock_guard lock(mutex_);
      ends = ends_;
    }
    if (!ends && Clock::now() < next) {
      bell_.wait_for(std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()));
      continue;
    }
    send_all();
    if (ends) return tell_end();
    // A collector that does not answer is asked less and less often.
    const auto pause = std::max<std::chrono::milliseconds>(
        retry_after_, options_.period * (1 << std::min(failures_, 4)));
    next = Clock::now() + std::min<std::chrono::milliseconds>(pause, longest_pause);
  }
}

void OtlpExporter::send_all() {
  retry_after_ = {};
  const bool is_taken = send_metrics() && send_spans();
  failures_ = is_taken ? 0 : failures_ + 1;
}

/// Returns false if the collector does not take anything now.
bool OtlpExporter::send_metrics() {
  otlp::Metrics metrics(wall_nanoseconds());
  std::vector<std::string> ended;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [_, run] : runs_) run->tell(metrics);
    ended.assign(ended_.begin(), ended_.end());
  }
  if (metrics.empty()) return true;
  const auto taken = post("/v1/metrics", otlp::metrics_request(options_.resource, metrics.take()));
  lacks_metrics_ = taken != Taken::yes;
  if (taken != Taken::yes) return taken == Taken::never;
  const std::lock_guard lock(mutex_);
  // A run of that name may have begun meanwhile.
  for (const auto& name : ended)
    if (std::erase(ended_, name) > 0) runs_.erase(name);
  return true;
}

/// Sends all spans. Returns false if the collector does not take anything now.
bool OtlpExporter::send_spans() {
  for (;;) {
    std::vector<otlp::Span> batch;
    {
      const std::lock_guard lock(mutex_);
      while (!spans_.empty() && batch.size() < most_spans_in_request) {
        batch.push_back(std::move(spans_.front()));
        spans_.pop_front();
      }
    }
    if (batch.empty()) return true;
    Value::List spans;
    for (const auto& span : batch) spans.push_back(to_value(span));
    const auto taken =
        post("/v1/traces", otlp::traces_request(options_.resource, std::move(spans)));
    if (taken == Taken::yes) continue;
    const std::lock_guard lock(mutex_);
    if (taken == Taken::never) {
      dropped_spans_ += static_cast<std::int64_t>(batch.size());
      continue;
    }
    // Spans that came meanwhile are newer.
    const auto room = most_spans - std::min(most_spans, spans_.size());
    const auto kept = std::min(batch.size(), room);
    dropped_spans_ += static_cast<std::int64_t>(batch.size() - kept);
    spans_.insert(spans_.begin(),
                  std::move_iterator(batch.end() - static_cast<std::ptrdiff_t>(kept)),
                  std::move_iterator(batch.end()));
    return false;
  }
}

OtlpExporter::Taken OtlpExporter::post(const std::string& path, const Value& body) {
  const auto request_end = Clock::now() + options_.limit;
  const HttpPatience patience{[this, request_end] {
                                const std::lock_guard lock(mutex_);
                                return std::min(request_end, end_by_);
                              },
                              bell_};
  const auto reply = http_post(options_.collector, path, to_json(body), patience);
  if (!reply) {
    complain(reply.error().text);
    return Taken::later;
  }
  if (reply->status >= 200 && reply->status < 300) {
    note_rejected(reply->body);
    return Taken::yes;
  }
  complain("it answered " + path + " with status " + std::to_string(reply->status));
  retry_after_ = reply->retry_after.value_or(std::chrono::seconds(0));
  return may_retry(reply->status) ? Taken::later : Taken::never;
}

/// A collector may take a request and reject parts of it.
void OtlpExporter::note_rejected(const std::string& reply) {
  const auto parsed = parse_json(reply);
  const Value* partly = parsed ? parsed->find("partialSuccess") : nullptr;
  if (!partly) return;
  const auto spans = count_in(*partly, "rejectedSpans");
  const auto points = count_in(*partly, "rejectedDataPoints");
  if (spans + points <= 0) return;
  complain("it rejected " + std::to_string(spans + points) + (spans > 0 ? " spans" : " numbers") +
           ": " + text_in(*partly, "errorMessage"));
  const std::lock_guard lock(mutex_);
  dropped_spans_ += spans;
}

/// Tells of the first problem alone.
void OtlpExporter::complain(const std::string& problem) {
  if (std::exchange(has_complained_, true)) return;
  say_("otlp: " + options_.collector.text() + ": " + problem +
       "; runs do not wait for it, and further problems are counted at the end");
}

void OtlpExporter::tell_end() {
  const std::lock_guard lock(mutex_);
  const auto lost = dropped_spans_ + static_cast<std::int64_t>(spans_.size());
  if (lost == 0 && !lacks_metrics_) return;
  std::string what;
  if (lost > 0) what = std::to_string(lost) + (lost == 1 ? " span" : " spans");
  if (lacks_metrics_) what += (what.empty() ? "" : " and ") + std::string("the last metrics");
  say_("otlp: " + options_.collector.text() + " did not take " + what);
}

}  // namespace troupe::apps
