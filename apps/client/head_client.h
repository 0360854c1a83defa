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

/// Somebody who asks a head, one question after another.
class HeadClient {
 public:
  /// An error where nobody answers there, or one of another version.
  static Result<std::unique_ptr<HeadClient>> dial(const transport::DialOptions& options);
  ~HeadClient();
  HeadClient(const HeadClient&) = delete;
  HeadClient& operator=(const HeadClient&) = delete;

  /// The answer, for which it waits while a head comes back. A head that does not answer any more
  /// is a refusal as well.
  Reply ask(const std::string& type, Value body);

  /// Where the head publishes events.
  const std::string& events() const { return events_; }

 private:
  class Line;
  HeadClient();

  std::unique_ptr<Line> line_;
  std::string events_;
};

}  // namespace troupe::apps
