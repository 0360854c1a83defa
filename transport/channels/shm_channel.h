#pragma once

#include <memory>
#include <string>

#include "core/result.h"
#include "transport/channels/channel.h"
#include "transport/channels/channel_thread.h"
#include "transport/channels/door.h"

namespace troupe::transport {

/// Channels between processes of one host and one user: an unnamed memory segment, which leaves
/// nothing behind however a process ends, and a Unix socket that wakes a sleeping peer and reports
/// its death.
///
/// The segment reserves three times the bound and takes real memory only as it is used. lend()
/// returns a slot in the first two thirds. The receiver's tensors alias the slots until their last
/// handle is dropped. If all slots are held, tensors pass through the last third, where they are
/// copied in and out: holding tensors makes a channel slower but never stops it. The sending thread
/// copies a tensor that was not lent once.
///
/// The door makes up an abstract socket address, which has no file.
Result<std::unique_ptr<Door>> open_shm_door(ChannelThread& thread, const DoorOrder& order);

/// Blocks until the door answers: do not call it on an actor's thread.
Result<std::unique_ptr<Sender>> connect_shm(ChannelThread& thread, const std::string& address,
                                            Sending sending);

}  // namespace troupe::transport
