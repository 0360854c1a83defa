#pragma once

#include <functional>
#include <string>

#include "apps/exit_code.h"

namespace troupe::apps {

/// Ends the process while threads of it are stuck: nobody is waited for, no destructor runs. `tell`
/// has some seconds to say why; where it is stuck too, `words` go straight to stderr.
[[noreturn]] void exit_now(ExitCode code, const std::function<void()>& tell,
                           const std::function<std::string()>& words);

}  // namespace troupe::apps
