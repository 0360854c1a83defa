#pragma once

#include <sys/types.h>

#include <optional>

/// Which user of this machine is at the other end of a connection.
namespace troupe::transport {

/// The user who made the socket at the far end of a Unix connection, or of a TCP connection within
/// this machine. Nothing if the far end is on another machine, or has closed its socket: the system
/// then does not know any more whose it was.
///
/// For TCP the system looks for the socket that has the two addresses the other way round. While
/// this end is open, no other socket can have them.
std::optional<uid_t> user_at_far_end(int descriptor);

}  // namespace troupe::transport
