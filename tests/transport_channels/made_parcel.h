#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/memory/tensor.h"
#include "transport/channels/channel.h"

namespace troupe::transport {

/// The sizes of a test's parcels. The largest parcel must fit into the bound.
struct ParcelSizes {
  int most_tensors = 6;
  std::int64_t most_elements = 4000;
};

/// A parcel to send, whose bytes follow from a seed and its index.
struct MadeParcel {
  std::vector<std::byte> head;
  std::vector<Tensor> tensors;
};

/// Makes a parcel. Some tensors are lent by the sender, others are in the pool's memory. Some
/// parcels have hundreds of tensors, some none, and some tensors are empty.
MadeParcel made_parcel(std::uint64_t seed, std::uint64_t index, const ParcelSizes& sizes,
                       Sender& sender, MemoryPool& pool);

/// Returns how a received parcel differs from the expected one; empty if all bits are equal.
std::string difference(const Parcel& parcel, std::uint64_t seed, std::uint64_t index,
                       const ParcelSizes& sizes);

}  // namespace troupe::transport
