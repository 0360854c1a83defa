#pragma once

namespace troupe::apps {

/// The exit codes of the program.
enum class ExitCode : int {
  done = 0,
  failed = 1,
  usage = 2,
  invalid = 3,  // The configuration or the plan is invalid, or the model does not fit.
  doctor_failed = 4,
  no_head = 5,
  too_few_nodes = 6,
  preempted = 75,     // The state is saved; run the command again.
  deposed = 76,       // The nodes know a newer head.
  dismissed = 77,     // A node process: the head has ended this node for good.
  interrupted = 130,  // Nothing was saved.
};

}  // namespace troupe::apps
