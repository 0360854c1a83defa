#pragma once

#include <sys/types.h>

#include <optional>

/// Finds the local user at the other end of a connection.
namespace troupe::transport {

/// Returns the user who made the peer's socket, for a Unix connection or a TCP connection within
/// this machine. Returns nothing if the peer is on another machine or has closed its socket, since
/// the system then forgets the owner.
///
/// For TCP, the system looks for the socket with the two addresses swapped. While this end is open,
/// no other socket can have them.
std::optional<uid_t> user_at_far_end(int descriptor);

}  // namespace troupe::transport
