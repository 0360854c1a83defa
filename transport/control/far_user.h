#pragma once

#include <sys/types.h>

#include <optional>

/// Finds the user of this machine at the other end of a connection.
namespace troupe::transport {

/// Returns the user who made the socket at the far end of a Unix connection, or of a TCP connection
/// within this machine. Returns nothing if the far end is on another machine, or has closed its
/// socket: the system then does not know its owner any more.
///
/// For TCP the system looks for the socket with the two addresses swapped. No other socket can have
/// them while this end is open.
std::optional<uid_t> user_at_far_end(int descriptor);

}  // namespace troupe::transport
