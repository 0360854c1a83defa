#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "apps/telemetry/http_post.h"
#include "apps/telemetry/otlp_json.h"
#include "apps/telemetry/run_telemetry.h"
#include "core/result.h"
#include "core/threads/event_fd.h"
#include "core/value.h"

namespace troupe::apps {

/// How the exporter sends.
struct OtlpOptions {
  HttpAddress collector;
  otlp::Attributes resource;               // Describes this process.
  std::chrono::milliseconds period{5000};  // Between two requests for metrics.
  std::chrono::milliseconds limit{5000};   // For a request, and for everything after the end.
};

/// Sends numbers and traces of runs to an OpenTelemetry collector, as OTLP over HTTP in JSON. It
/// has a thread of its own, so that nobody waits for the collector. While the collector is away,
/// spans wait for it; further ones than `most_spans` are dropped and counted. Numbers need not
/// wait: the next request has newer ones.
class OtlpExporter {
 public:
  static constexpr std::size_t most_spans = 2048;
  static constexpr std::size_t most_spans_in_request = 512;
  /// Runs that have ended wait, too, until their last numbers were taken. Older ones are dropped.
  static constexpr std::size_t most_ended_runs = 64;
  static constexpr int usual_port = 4318;

  /// `say` tells of the first request that failed, and at the end of what did not arrive. The
  /// exporter's thread calls it.
  OtlpExporter(OtlpOptions options, std::function<void(const std::string&)> say);
  /// Ends as finish() does.
  ~OtlpExporter();
  OtlpExporter(const OtlpExporter&) = delete;
  OtlpExporter& operator=(const OtlpExporter&) = delete;

  /// Takes an event of a run, which has its time. Returns at once. Any thread may call it.
  void tell(const Value& event);
  /// Sends what is left, within the limit. Later events are ignored.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  enum class Taken : std::uint8_t { yes, later, never };

  void run();
  void send_all();
  bool send_metrics();
  bool send_spans();
  Taken post(const std::string& path, const Value& body);
  void note_rejected(const std::string& reply);
  void complain(const std::string& problem);
  void drop_ended_runs(std::size_t most);
  void tell_end();

  const OtlpOptions options_;
  const std::function<void(const std::string&)> say_;

  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<RunTelemetry>> runs_;
  std::deque<std::string> ended_;  // Names of runs, the oldest first.
  std::deque<otlp::Span> spans_;
  std::int64_t dropped_spans_ = 0;
  bool ends_ = false;
  Clock::time_point end_by_ = Clock::time_point::max();

  // Used by the thread.
  bool has_complained_ = false;
  bool lacks_metrics_ = false;  // The last metrics were not taken.
  int failures_ = 0;            // In a row.
  std::chrono::seconds retry_after_{0};

  EventFd bell_;
  std::thread thread_;  // Declared last: it uses the other members.
};

}  // namespace troupe::apps
