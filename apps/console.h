#pragma once

#include <string>

#include "apps/exit_code.h"
#include "core/result.h"

namespace troupe::apps {

/// The flags that every command understands.
struct CommonFlags {
  std::string output = "auto";  // auto, plain or json.
  bool quiet = false;
};

/// Prints an error in the format that all commands share, and returns `code`.
ExitCode complain(ExitCode code, const std::string& text);
/// Prints why the program cannot use its input, and returns ExitCode::invalid.
ExitCode invalid(const Error& error);

}  // namespace troupe::apps
