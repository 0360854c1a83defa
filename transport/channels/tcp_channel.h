#pragma once

#include <memory>
#include <string>

#include "core/result.h"
#include "transport/channels/channel.h"
#include "transport/channels/channel_thread.h"
#include "transport/channels/door.h"

namespace troupe::transport {

/// Between hosts. With keys at both ends (Sending, Receiving) a channel is encrypted and each end
/// knows the other one; without, tensors travel in the clear, and a token is all that a sender
/// shows. Tensors are read from the socket straight into memory of the receiver's
/// pool (but for the first kilobytes, which come together with their head).
///
/// Both ends notice at once that a process has died. They notice within about two seconds that its
/// host, or the path to it, is gone (path_patience in socket.h).
///
/// `address` is a number and a port, "10.0.0.7:4711" or "[fe80::1]:4711": names would need a
/// resolver, and a wait without an end. Port 0 takes a free one.
Result<std::unique_ptr<Door>> open_tcp_door(ChannelThread& thread, const std::string& address,
                                            const DoorOrder& order);

/// Waits until the door has let it in: not for the thread of an actor.
Result<std::unique_ptr<Sender>> connect_tcp(ChannelThread& thread, const std::string& address,
                                            Sending sending, Checksums checksums = Checksums::on);

}  // namespace troupe::transport
