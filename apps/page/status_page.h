#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "apps/events/run_counters.h"
#include "apps/page/history_file.h"
#include "apps/page/http_server.h"
#include "core/result.h"
#include "core/value.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// A read-only HTTP page with the head's status, for browsers at "/" and for Prometheus at
/// "/metrics". The page asks for "/api/look?run=NAME", "/api/runs/NAME/about" and
/// "/api/runs/NAME/config", and scripts for "/api/status" and "/api/runs/NAME". "/healthz" answers
/// while the head does. Only this machine can reach it, since HTTP asks for no keys. What many
/// visitors ask for is made anew at most once a second.
class StatusPage {
 public:
  /// Returns the answer to `status`; any thread.
  using Status = std::function<Value()>;
  /// Returns the numbers of the active runs by name; any thread.
  using Numbers = std::function<std::map<std::string, RunNumbers>()>;

  /// Listens. Fails if the address is not local to this machine or is in use. Port 0 takes a free
  /// port. `files` has the folders of the head's runs and outlives the page.
  static Result<std::unique_ptr<StatusPage>> listen(const std::string& address,
                                                    storage::Files& files, Status status,
                                                    Numbers numbers);
  ~StatusPage() = default;
  StatusPage(const StatusPage&) = delete;
  StatusPage& operator=(const StatusPage&) = delete;

  /// "http://127.0.0.1:4702/"
  std::string address() const { return "http://" + server_->address() + "/"; }

 private:
  using Clock = std::chrono::steady_clock;
  /// A text that is made anew only if it is old.
  struct Kept {
    SharedText text;
    std::optional<Clock::time_point> made;
  };
  struct KeptRun {
    HistoryFile history;
    Kept answer, about;
    Clock::time_point asked;
  };

  StatusPage(storage::Files& files, Status status, Numbers numbers);
  HttpAnswer answer_to(const HttpRequest& request);
  HttpAnswer answer_about(const HttpRequest& request);
  HttpAnswer answer_look(const HttpRequest& request);
  HttpAnswer answer_about_run(const std::string& asked);
  SharedText status_text();
  bool is_run(const std::string& name) const;
  KeptRun& kept(const std::string& run);
  SharedText history_text(const std::string& run);
  SharedText about_text(const std::string& run);

  storage::Files& files_;
  Status status_;
  Numbers numbers_;
  // Used by the server's thread.
  Value newest_;
  Kept newest_text_;
  std::map<std::string, KeptRun> runs_;
  std::unique_ptr<HttpServer> server_;  // Declared last: its thread uses the other members.
};

/// Returns the HTML page. It has the tables as text, for browsers that run no scripts.
std::string page_of(const Value& status);
}  // namespace troupe::apps
