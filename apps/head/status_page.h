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

/// How a head stands, for browsers at "/" and for Prometheus at "/metrics". It only tells. Whoever
/// is on this machine may read it, and nobody else: HTTP asks for no keys. One is served after
/// another, each for no longer than a second.
class StatusPage {
 public:
  /// As `status` answers; any thread.
  using Status = std::function<Value()>;

  /// An error where the address is not one of this machine alone, or is in use. Port 0 takes a free
  /// one.
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

/// For a browser, which asks again by itself.
std::string page_of(const Value& status);
/// In the text format of Prometheus.
std::string metrics_of(const Value& status);

}  // namespace troupe::apps
