#pragma once

namespace troupe::transport {

/// Initializes libsodium. Call it before any other function of libsodium, from any thread and as
/// often as you like.
void start_sodium();

}  // namespace troupe::transport
