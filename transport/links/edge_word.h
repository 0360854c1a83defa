#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "transport/channels/door.h"

/// What the ends of an edge tell one another by ordinary channels, as bytes. Nothing is believed.
namespace troupe::transport {

constexpr std::uint32_t edge_magic = 0x45505254;  // "TRPE"

enum class EdgeWordKind : std::uint32_t {
  name = 1,    // From end 0 to all others: the link's id follows.
  parcel = 2,  // To the receiver: what stands in front of a parcel follows, as in frame.h. Its
               // tensors come by the link, to which the send is posted already.
  closed = 3,  // To the receiver: all has arrived, and nothing more comes.
  cut = 4,     // To the receiver: nothing more comes.
  grant = 5,   // To the sender: how much it may post.
  let_go = 6,  // To the sender: nothing more is wanted.
  sum = 7,     // To all others: one sum more may be posted. The sizes of its pieces follow.
};

struct EdgeWord {
  std::uint32_t magic = edge_magic;
  EdgeWordKind kind = EdgeWordKind::name;
  std::array<std::uint64_t, 2> run{};
  std::uint64_t epoch = 0;
  std::uint64_t edge = 0;
  // Of a grant, both counted from the epoch's beginning.
  std::uint64_t granted = 0;  // So many parcels may be posted.
  std::uint64_t arrived = 0;  // So many has the listener had.
  std::uint64_t member = 0;   // The end whose word it is: 0 the sender's, 1 the receiver's.
};
static_assert(sizeof(EdgeWord) == 64);

/// Replaces the `bytes`, which keep their memory.
void write_edge_word(const EdgeWord& word, std::span<const std::byte> rest,
                     std::vector<std::byte>& bytes);

struct ReadEdgeWord {
  EdgeWord word;
  std::span<const std::byte> rest;
};
/// None where it is not a word of an edge.
std::optional<ReadEdgeWord> read_edge_word(std::span<const std::byte> bytes);

}  // namespace troupe::transport
