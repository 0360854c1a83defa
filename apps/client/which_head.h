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

/// The head that is meant by a command, and how to speak to it.
struct WhichHead {
  std::string address;
  DialKeys keys;

  void add_to(CLI::App& command);
  Result<transport::DialOptions> options() const;
  Result<std::unique_ptr<HeadClient>> dial() const;
  /// The same keys, where its events are.
  Result<transport::DialOptions> events_of(const HeadClient& client) const;
};

ExitCode no_head(const Error& error);

/// Says why something was refused; invalid is what a configuration or a request is that can never
/// be.
ExitCode refused(const Refusal& refusal);

/// Asks once, and prints the answer: as JSON, or as `plainly` does.
ExitCode ask(const WhichHead& head, transport::MessageName type, Value body,
             const CommonFlags& flags, const std::function<void(const Value&)>& plainly);

}  // namespace troupe::apps
