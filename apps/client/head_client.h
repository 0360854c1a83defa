#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "apps/client/reply.h"
#include "core/result.h"
#include "core/value.h"
#include "transport/control/control_socket.h"

namespace troupe::apps {

/// A client that asks a head one question after another.
class HeadClient {
 public:
  /// Connects. Fails if no head answers at the address, or if its version differs.
  static Result<std::unique_ptr<HeadClient>> dial(const transport::DialOptions& options);
  ~HeadClient();
  HeadClient(const HeadClient&) = delete;
  HeadClient& operator=(const HeadClient&) = delete;

  /// Asks and returns the answer. Waits while the head restarts; if the head does not answer in
  /// time, returns a refusal.
  Reply ask(const std::string& type, Value body);

  /// Returns the endpoint on which the head publishes events.
  const std::string& events() const { return events_; }

 private:
  class Line;
  HeadClient();

  std::unique_ptr<Line> line_;
  std::string events_;
};

}  // namespace troupe::apps
