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

/// Passes handles and copies no tensor. The sending thread calls the listener before send()
/// returns. If the listener is busy with another thread's parcel, that thread delivers this parcel
/// as well.
LocalChannel make_local_channel(MemoryPool& memory, Bound bound, Listener listener, OnEnd on_end);

}  // namespace troupe::transport
