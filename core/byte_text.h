#pragma once

#include <cstdint>
#include <string>

namespace troupe {

/// Writes a number of bytes for people, with three digits: "11.8 GiB".
std::string byte_text(std::int64_t bytes);

}  // namespace troupe
