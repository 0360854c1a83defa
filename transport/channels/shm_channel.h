#pragma once

#include <memory>
#include <string>

#include "core/result.h"
#include "transport/channels/channel.h"
#include "transport/channels/channel_thread.h"
#include "transport/channels/door.h"

namespace troupe::transport {

/// Between processes of one host and one user: a segment of memory that has no name, so nothing is
/// left behind however a process ends, and beside it a Unix socket that tells of the peer's death
/// and wakes who sleeps.
///
/// The segment has room for three bounds of bytes and takes real memory only as it is used. lend()
/// gives a slot of the first two thirds, and the receiver's tensors are the slots themselves, until
/// the last handle is dropped. Where receiver or sender hold so many that none is left, tensors
/// pass through the last third, where they are copied in and out and stay for nobody: who holds for
/// ever makes a channel slower and never stops it. A tensor that was not lent is copied once, by
/// the thread that sends it.
///
/// The address is made up, in the namespace that has no files.
Result<std::unique_ptr<Door>> open_shm_door(ChannelThread& thread, const DoorOrder& order);

/// Waits until the door has let it in: not for the thread of an actor.
Result<std::unique_ptr<Sender>> connect_shm(ChannelThread& thread, const std::string& address,
                                            Sending sending);

}  // namespace troupe::transport
