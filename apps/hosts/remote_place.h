#pragma once

#include <string>
#include <vector>

#include "apps/hosts/check.h"
#include "apps/hosts/environment_file.h"

namespace troupe::apps {

/// Where and how this program is started on other machines. Unless said otherwise as here: the same
/// file, in the same folder, so that the paths of a configuration mean the same.
struct RemotePlace {
  std::string program;
  std::string folder;
  Environment environment;

  /// The place of this process, with the variables of `.deepspeed_env`.
  static Result<RemotePlace> like_here(const std::string& program, const std::string& folder);
};

/// A script of the POSIX shell that goes to the place; what follows finds its variables set.
std::string script_to(const RemotePlace& place);
/// And one that becomes this program there.
std::string script_to_run(const RemotePlace& place, const std::vector<std::string>& arguments);

/// Whether nothing can have run of a script that went to the place and ended so. `said` as below.
bool is_untouched(const std::string& host, int code, const std::string& said);

/// How a machine was reached over ssh. `said` is what came on the error stream, all of it.
Check judge_reached(const std::string& host, int code, const std::string& said,
                    const RemotePlace& place);

}  // namespace troupe::apps
