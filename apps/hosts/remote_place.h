#pragma once

#include <string>
#include <vector>

#include "apps/hosts/check.h"
#include "apps/hosts/environment_file.h"

namespace troupe::apps {

/// The program and folder with which this program is started on other machines. By default it is
/// the same file in the same folder, so that paths in a configuration keep their meaning.
struct RemotePlace {
  std::string program;
  std::string folder;
  Environment environment;

  /// Returns the place of this process, with the variables of `.deepspeed_env`.
  static Result<RemotePlace> like_here(const std::string& program, const std::string& folder);
};

/// Returns a POSIX shell script that enters the folder and sets the variables.
std::string script_to(const RemotePlace& place);
/// Returns a script that enters the folder and then executes this program.
std::string script_to_run(const RemotePlace& place, const std::vector<std::string>& arguments);

/// Returns whether certainly nothing of a script that entered the place has run, judging by exit
/// code and error output. `said` is as below.
bool is_untouched(const std::string& host, int code, const std::string& said);

/// Judges how a machine was reached over ssh. `said` is the whole error output.
Check judge_reached(const std::string& host, int code, const std::string& said,
                    const RemotePlace& place);

}  // namespace troupe::apps
