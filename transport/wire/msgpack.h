#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/result.h"
#include "core/value.h"
#include "transport/wire/wire.h"

/// Values as msgpack, and back; wire.h is what others include.
namespace troupe::transport {

/// Numbers that are not finite become nil.
std::string pack(const Value& value);

/// What reading `bytes` as one value would allocate; an error where they are not one, break a limit
/// or hold what a Value cannot (binary, an integer of 64 bits without a sign). Allocates next to
/// nothing itself. `where` begins the text of an error: "run.submit.body".
Result<std::size_t> memory_to_unpack(std::string_view bytes, const WireLimits& limits,
                                     std::string_view where);

/// The value, if it takes at most `memory` bytes. A key that comes twice in a map is an error.
Result<Value> unpack(std::string_view bytes, const WireLimits& limits, std::size_t memory,
                     std::string_view where);

}  // namespace troupe::transport
