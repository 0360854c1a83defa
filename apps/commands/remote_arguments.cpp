#include "apps/commands/remote_arguments.h"

#include <CLI/CLI.hpp>

namespace troupe::apps {

void RemoteArguments::add_to(CLI::App& command) {
  command.add_option("--program", program, "path of `troupe` on the machines (default: as here)");
  command.add_option("--folder", folder, "working folder on the machines (default: as here)");
}

}  // namespace troupe::apps
