#pragma once

namespace troupe::transport {

/// Prepares libsodium; call it before any other function of that library. Any thread, any number
/// of times.
void start_sodium();

}  // namespace troupe::transport
