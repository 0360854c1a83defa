#pragma once

namespace troupe::apps {

/// From now on SIGQUIT, which Ctrl-\ sends, makes this process print on stderr where its threads
/// are, and go on. A thread of its own does it, whatever else is stuck; nobody waits for its end.
/// Call it once.
void print_stacks_on_quit();

}  // namespace troupe::apps
