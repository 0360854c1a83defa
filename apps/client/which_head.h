#pragma once

#include <functional>
#include <memory>
#include <string>

#include "apps/client/head_client.h"
#include "apps/client/wire_keys.h"
#include "apps/console.h"
#include "core/result.h"
#include "core/value.h"

namespace troupe::apps {

/// The head that a command addresses, and the keys to dial it with.
struct WhichHead {
  std::string address;
  DialKeys keys;

  void add_to(CLI::App& command);
  Result<transport::DialOptions> options() const;
  Result<std::unique_ptr<HeadClient>> dial(const CommonFlags& flags) const;
  /// Returns the options to subscribe to the head's events, with the same keys.
  Result<transport::DialOptions> events_of(const HeadClient& client) const;
};

ExitCode no_head(const Error& error);

/// Prints why a request was refused. Returns ExitCode::invalid if the configuration or the request
/// can never be valid.
ExitCode refused(const Refusal& refusal);

/// Asks once and prints the answer: as JSON, or by `plainly`.
ExitCode ask(const WhichHead& head, transport::MessageName type, Value body,
             const CommonFlags& flags, const std::function<void(const Value&)>& plainly);

}  // namespace troupe::apps
