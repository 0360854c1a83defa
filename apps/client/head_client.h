#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "apps/client/reply.h"
#include "core/result.h"
#include "core/value.h"
#include "transport/control/control_socket.h"
#include "transport/wire/message_types.h"

namespace troupe::apps {

/// Called while a client waits for a head that is away or does not answer, once for each second.
using TellWait = std::function<void(std::chrono::seconds waited)>;
/// Returns a TellWait that says on stderr after two seconds what is waited for.
TellWait wait_on_stderr(const std::string& endpoint);

/// A client that asks a head one question after another. A signal that
/// comes while it waits (signals.h) ends the wait.
class HeadClient {
 public:
  /// Connects. Fails if no head answers at the address, or if its version differs.
  static Result<std::unique_ptr<HeadClient>> dial(const transport::DialOptions& options,
                                                  TellWait tell_wait);
  ~HeadClient();
  HeadClient(const HeadClient&) = delete;
  HeadClient& operator=(const HeadClient&) = delete;

  /// Returns the answer. Waits while a head comes back; a head that stays away is a refusal.
  Reply ask(transport::MessageName type, Value body) {
    return ask_as_written(type.text(), std::move(body));
  }
  /// Asks what a user wrote. The head refuses a type that it does not handle.
  Reply ask_as_written(const std::string& type, Value body);

  /// Replaces what dial() was given.
  void tell_waits(TellWait tell_wait);
  /// Sets what else ends a wait for an answer, which is then a refusal. It is asked often.
  void end_waits_when(std::function<bool()> is_over);
  /// Returns the endpoint of the head.
  const std::string& endpoint() const;
  /// Returns the endpoint on which the head publishes events.
  const std::string& events() const { return events_; }

 private:
  class Line;
  HeadClient();

  std::unique_ptr<Line> line_;
  std::string events_;
};

}  // namespace troupe::apps
