#pragma once

namespace troupe::apps {

/// What the program tells the shell.
enum class ExitCode : int {
  done = 0,
  failed = 1,
  usage = 2,
  invalid = 3,  // The configuration or the plan; does not fit included.
  doctor_failed = 4,
  no_head = 5,
  too_few_nodes = 6,
  preempted = 75,     // Its state is saved: run it again.
  deposed = 76,       // The nodes know a head that came after this one.
  dismissed = 77,     // Of a node's process: its head has ended the node for good.
  interrupted = 130,  // Nothing was saved.
};

}  // namespace troupe::apps
