#pragma once

#include "made_parcel.h"
#include "transport/channels/door.h"

namespace troupe::transport {

/// The constants that a test and its channel_peer share.
constexpr Epoch peer_epoch{{1, 2}, 3};
constexpr Token peer_token{4};
constexpr Bound peer_bound{2'000'000, 64};
constexpr ParcelSizes peer_sizes{6, 8000};

}  // namespace troupe::transport
