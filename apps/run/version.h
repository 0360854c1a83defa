#pragma once

#include <string>

namespace troupe::apps {

/// The commit that the program was built from, with "-dirty" if files differed from it; "unknown"
/// outside git. The build makes its source, so that a commit recompiles nothing else.
extern const char* const commit;

/// What `troupe --version` says: the version and the commit in the first line, then the compiler
/// and each library with its version. Its last line has no end.
std::string version_text();

}  // namespace troupe::apps
