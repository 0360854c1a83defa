#pragma once

#include <string>

namespace troupe::tests {

/// The configuration of the first run that a person tries.
inline const std::string quickstart = TROUPE_TEST_DATA "/../../config/quickstart.toml";

}  // namespace troupe::tests
