#pragma once

#include <functional>
#include <string>

#include "core/result.h"
#include "core/value.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// Reads a file that has a value of JSON in each line, and takes them in their order, from line 1
/// on. The first that is none, or that is not taken, ends it; the error says where.
Status each_json_line(storage::Files& files, const std::string& path,
                      const std::function<Status(int line, const Value& value)>& take);

}  // namespace troupe::apps
