#pragma once

#include <memory>
#include <string>

#include "core/result.h"
#include "transport/channels/channel.h"
#include "transport/channels/channel_thread.h"
#include "transport/channels/door.h"

namespace troupe::transport {

/// Channels between hosts. If both ends have keys (Sending, Receiving), the channel is encrypted
/// and authenticated. Otherwise tensors travel in the clear, and the sender shows only a token. The
/// socket is read straight into the receiver's pool, except for the first kilobytes of a payload,
/// which arrive together with its head.
///
/// Both ends notice the death of a process at once, and the loss of a host or path within about two
/// seconds (path_patience in socket.h).
///
/// `address` is numeric: "10.0.0.7:4711" or "[fe80::1]:4711". Resolving a name could block without
/// limit. Port 0 takes a free port.
Result<std::unique_ptr<Door>> open_tcp_door(ChannelThread& thread, const std::string& address,
                                            const DoorOrder& order);

/// Blocks until the door answers: do not call it on an actor's thread.
Result<std::unique_ptr<Sender>> connect_tcp(ChannelThread& thread, const std::string& address,
                                            Sending sending, Checksums checksums = Checksums::on);

}  // namespace troupe::transport
