#pragma once

#include <cstddef>
#include <string>

#include "core/result.h"

namespace troupe::transport {

/// Returns the content of a file that holds a secret; of a longer file, the first `most` bytes.
/// Rejects a file that anybody but its owner may read or write. `another` is what to make if
/// somebody may have seen the secret: "a new pair".
Result<std::string> read_secret_file(const std::string& path, std::size_t most,
                                     const std::string& another);

}  // namespace troupe::transport
