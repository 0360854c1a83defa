#pragma once

#include <functional>
#include <string>

#include "core/result.h"
#include "core/value.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// Reads a file with a JSON value in each line, and calls `take` for each in order. Line numbers
/// begin at 1. Stops at the first line that is invalid or that `take` rejects; the error says
/// where.
Status each_json_line(storage::Files& files, const std::string& path,
                      const std::function<Status(int line, const Value& value)>& take);

}  // namespace troupe::apps
