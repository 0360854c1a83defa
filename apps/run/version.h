#pragma once

#include <string>

namespace troupe::apps {

/// The commit of this build, with "-dirty" if files differed from it; "unknown" outside git. The
/// build system generates its source file, so that a new commit recompiles nothing else.
extern const char* const commit;

/// Returns the text of `troupe --version`: the version and commit, then the compiler and each
/// library with its version. The last line has no newline.
std::string version_text();

}  // namespace troupe::apps
