#include "apps/commands/remote_arguments.h"

#include <CLI/CLI.hpp>

namespace troupe::apps {

void RemoteArguments::add_to(CLI::App& command) {
  command.add_option("--program", program, "where troupe is on the machines (as here)");
  command.add_option("--folder", folder, "the folder that it is started in (as here)");
}

}  // namespace troupe::apps
