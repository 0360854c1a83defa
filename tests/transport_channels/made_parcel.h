#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/memory/tensor.h"
#include "transport/channels/channel.h"

namespace troupe::transport {

/// How large the parcels of a test are. What the most is all together must be within the bound.
struct ParcelSizes {
  int most_tensors = 6;
  std::int64_t most_elements = 4000;
};

/// A parcel to send whose every byte follows from a seed and its place in the order.
struct MadeParcel {
  std::vector<std::byte> head;
  std::vector<Tensor> tensors;
};

/// Some tensors are lent by the sender, the others are in memory of the pool; some parcels have
/// hundreds of tensors, some none, and some tensors no element.
MadeParcel made_parcel(std::uint64_t seed, std::uint64_t index, const ParcelSizes& sizes,
                       Sender& sender, MemoryPool& pool);

/// Empty where what has come is that parcel bit by bit; else what differs.
std::string difference(const Parcel& parcel, std::uint64_t seed, std::uint64_t index,
                       const ParcelSizes& sizes);

}  // namespace troupe::transport
