#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "transport/channels/door.h"

/// The byte format of the words that ends of edges exchange. Readers check everything.
namespace troupe::transport {

constexpr std::uint32_t edge_magic = 0x45505254;  // "TRPE"

enum class EdgeWordKind : std::uint32_t {
  name = 1,    // From end 0 to all others. The link's id follows.
  parcel = 2,  // To the receiver. A parcel's front follows, as in frame.h. The send of its tensors
               // is posted on the link already.
  closed = 3,  // To the receiver: everything has arrived, and nothing more comes.
  cut = 4,     // To the receiver: nothing more comes.
  grant = 5,   // To the sender: how much it may post.
  let_go = 6,  // To the sender: send nothing more.
  sum = 7,     // To all others: this end is ready for one sum more. The sizes of its pieces follow.
};

struct EdgeWord {
  std::uint32_t magic = edge_magic;
  EdgeWordKind kind = EdgeWordKind::name;
  std::array<std::uint64_t, 2> run{};
  std::uint64_t epoch = 0;
  std::uint64_t edge = 0;
  // Counts of a grant, from the start of the attempt:
  std::uint64_t granted = 0;  // parcels that may be posted,
  std::uint64_t arrived = 0;  // and parcels that the listener has received.
  std::uint64_t member = 0;   // The speaking end: 0 is the sender, 1 the receiver.
};
static_assert(sizeof(EdgeWord) == 64);

/// Replaces `bytes` and reuses its memory.
void write_edge_word(const EdgeWord& word, std::span<const std::byte> rest,
                     std::vector<std::byte>& bytes);

struct ReadEdgeWord {
  EdgeWord word;
  std::span<const std::byte> rest;
};
/// Returns nothing if the bytes are not a valid word.
std::optional<ReadEdgeWord> read_edge_word(std::span<const std::byte> bytes);

}  // namespace troupe::transport
