#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "apps/events/run_counters.h"
#include "apps/page/http_server.h"
#include "core/result.h"
#include "core/value.h"
#include "transport/keys/access_token.h"

namespace troupe::apps {

/// The options of a head for this page.
struct MetricsOptions {
  std::string address;  // "10.0.0.1:4703"
  std::string token_file;
  bool without_token = false;
};

/// The address of the metrics, and the token that they want. Without a token everybody may read.
struct MetricsAccess {
  std::string address;
  std::optional<transport::AccessToken> token;
};

/// Reads the token. Fails if everybody on the network could read the metrics although nobody asked
/// for that.
Result<MetricsAccess> metrics_access(const MetricsOptions& options);

/// A read-only HTTP server for a Prometheus on another machine: "/metrics" for visitors with the
/// token, and "/healthz" for everybody, which tells nothing but that the head answers. What it
/// tells is at most half a second old.
class MetricsPage {
 public:
  /// Returns the answer to `status`; any thread.
  using Status = std::function<Value()>;
  /// Returns the numbers of the active runs by name; any thread.
  using Numbers = std::function<std::map<std::string, RunNumbers>()>;

  static Result<std::unique_ptr<MetricsPage>> listen(MetricsAccess access, Status status,
                                                     Numbers numbers);

  /// "http://10.0.0.1:4703/metrics"
  std::string address() const { return "http://" + server_->address() + "/metrics"; }

 private:
  MetricsPage(MetricsAccess access, Status status, Numbers numbers);
  HttpAnswer answer_to(const HttpRequest& request);
  bool may_read(const HttpRequest& request) const;

  const MetricsAccess access_;
  const bool is_local_;
  Status status_;
  Numbers numbers_;
  // Used by the server's thread.
  SharedText text_;
  std::optional<std::chrono::steady_clock::time_point> made_;
  std::unique_ptr<HttpServer> server_;  // Declared last: its thread uses the other members.
};

}  // namespace troupe::apps
