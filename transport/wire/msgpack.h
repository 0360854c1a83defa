#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/result.h"
#include "core/value.h"
#include "transport/wire/wire.h"

/// Converts values to msgpack and back. Other folders include wire.h instead.
namespace troupe::transport {

/// Packs a value. A number that is not finite becomes nil.
std::string pack(const Value& value);

/// Returns how much memory unpack() would allocate. Fails if the bytes are not exactly one value,
/// exceed a limit or hold something that a Value cannot (binary, an unsigned 64-bit integer).
/// Allocates almost nothing itself. An error text begins with `where`, such as "run.submit.body".
Result<std::size_t> memory_to_unpack(std::string_view bytes, const WireLimits& limits,
                                     std::string_view where);

/// Unpacks one value that takes at most `memory` bytes. Fails if a map has a key twice.
Result<Value> unpack(std::string_view bytes, const WireLimits& limits, std::size_t memory,
                     std::string_view where);

}  // namespace troupe::transport
