#include "apps/machine/keeper.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace troupe::apps {

int signal_of_keeper() { return SIGRTMIN; }

pid_t keeper_of_this_process() {
  // A process that a kept process starts inherits the variable, but has another parent.
  const char* text = std::getenv(keeper_variable);
  const auto keeper = static_cast<pid_t>(text ? std::strtol(text, nullptr, 10) : 0);
  return keeper == getppid() ? keeper : 0;
}

}  // namespace troupe::apps
