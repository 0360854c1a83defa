# Run on each build: writes the source that says of which commit the program is, if that has changed.
# Usage: cmake -DSOURCE_DIR=... -DOUTPUT=... -P Commit.cmake
set(commit "unknown")
find_program(git git)
if(git)
  # The folder itself must be the repository, not a folder above it. Its owner may be another user.
  set(ENV{GIT_CEILING_DIRECTORIES} "${SOURCE_DIR}/..")
  execute_process(
    COMMAND "${git}" -c "safe.directory=*" describe --always --dirty --abbrev=12 --exclude=*
    WORKING_DIRECTORY "${SOURCE_DIR}" OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed AND found MATCHES "^[0-9a-f]+(-dirty)?$")
    set(commit "${found}")
  endif()
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT [[// Written by cmake/Commit.cmake.
#include "apps/run/version.h"

namespace troupe::apps {
const char* const commit = "@commit@";
}  // namespace troupe::apps
]] @ONLY)
