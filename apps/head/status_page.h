#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "core/descriptor.h"
#include "core/descriptor_limit.h"
#include "core/result.h"
#include "core/threads/event_fd.h"
#include "core/value.h"

namespace troupe::apps {

/// A read-only HTTP page with the head's status, for browsers at "/" and for Prometheus at
/// "/metrics". Only this machine can reach it, since HTTP asks for no keys. It serves one request
/// after another, each within a second.
class StatusPage {
 public:
  /// Returns the answer to `status`; any thread.
  using Status = std::function<Value()>;

  /// Listens. Fails if the address is not local to this machine or is in use. Port 0 takes a free
  /// port.
  static Result<std::unique_ptr<StatusPage>> listen(const std::string& address, Status status);
  ~StatusPage();
  StatusPage(const StatusPage&) = delete;
  StatusPage& operator=(const StatusPage&) = delete;

  /// "http://127.0.0.1:4702/"
  std::string address() const;

 private:
  StatusPage(Descriptor listening, Status status);
  void run();
  void serve(const Descriptor& visitor) const;
  std::string answer_to(const std::string& request) const;

  Descriptor listening_;
  SpareDescriptor spare_;
  Status status_;
  EventFd ends_;
  std::thread thread_;
};

/// Returns the HTML page, which reloads itself.
std::string page_of(const Value& status);
/// Returns the metrics in the text format of Prometheus.
std::string metrics_of(const Value& status);

}  // namespace troupe::apps
