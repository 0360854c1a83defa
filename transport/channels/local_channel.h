#pragma once

#include <memory>

#include "core/memory/memory_pool.h"
#include "transport/channels/channel.h"

namespace troupe::transport {

/// Both ends of a channel within the process.
struct LocalChannel {
  std::unique_ptr<Sender> sender;
  std::unique_ptr<Receiver> receiver;
};

/// Handles change hands, no number is copied. The listener is called by the thread that sends,
/// before send() returns; where it is busy with another thread's parcel, by that thread.
LocalChannel make_local_channel(MemoryPool& memory, Bound bound, Listener listener, OnEnd on_end);

}  // namespace troupe::transport
