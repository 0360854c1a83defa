#pragma once

#include <functional>
#include <memory>
#include <string>

#include "apps/machine/notifier.h"
#include "core/result.h"

namespace CLI {
class App;
}  // namespace CLI

namespace troupe::apps {

/// The options of a command that leads runs, for a command that is run for their events. They are
/// options and no keys of the configuration: whoever submits a run must not choose what runs on the
/// head's machine.
struct NotifyArguments {
  NotifyOptions options;

  void add_to(CLI::App& command);
};

/// Returns null if nobody wants notifications.
Result<std::unique_ptr<Notifier>> open_notifier(const NotifyArguments& arguments,
                                                std::function<void(const std::string&)> say);

}  // namespace troupe::apps
