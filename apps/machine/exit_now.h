#pragma once

#include <functional>
#include <string>

#include "apps/exit_code.h"

namespace troupe::apps {

/// Ends the process while threads of it are stuck: joins no thread and runs no destructor. `tell`
/// has 3 s to report the reason; if it hangs too, `words` go directly to stderr.
[[noreturn]] void exit_now(ExitCode code, const std::function<void()>& tell,
                           const std::function<std::string()>& words);

}  // namespace troupe::apps
