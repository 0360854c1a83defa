#include "apps/machine/notify_arguments.h"

#include <CLI/CLI.hpp>
#include <utility>

namespace troupe::apps {

void NotifyArguments::add_to(CLI::App& command) {
  auto* notify = command.add_option(
      "--notify", options.command,
      "program with arguments, separated by blanks, that gets events of runs as JSON on its stdin");
  command
      .add_option("--notify-on", options.on,
                  "its events, separated by commas: done, failed, stopped, recovered, warn, "
                  "evaluated (default: done,failed,stopped)")
      ->needs(notify);
}

Result<std::unique_ptr<Notifier>> open_notifier(const NotifyArguments& arguments,
                                                std::function<void(const std::string&)> say) {
  if (arguments.options.command.empty()) return std::unique_ptr<Notifier>();
  auto notification = Notification::parse(arguments.options);
  if (!notification) return notification.error();
  return std::make_unique<Notifier>(std::move(*notification), std::move(say));
}

}  // namespace troupe::apps
