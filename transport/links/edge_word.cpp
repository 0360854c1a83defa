#include "transport/links/edge_word.h"

#include <cstring>

namespace troupe::transport {

void write_edge_word(const EdgeWord& word, std::span<const std::byte> rest,
                     std::vector<std::byte>& bytes) {
  bytes.resize(sizeof word + rest.size());
  std::memcpy(bytes.data(), &word, sizeof word);
  if (!rest.empty()) std::memcpy(bytes.data() + sizeof word, rest.data(), rest.size());
}

std::optional<ReadEdgeWord> read_edge_word(std::span<const std::byte> bytes) {
  ReadEdgeWord read;
  if (bytes.size() < sizeof read.word) return {};
  std::memcpy(&read.word, bytes.data(), sizeof read.word);
  if (read.word.magic != edge_magic || read.word.kind < EdgeWordKind::name ||
      read.word.kind > EdgeWordKind::sum)
    return {};
  read.rest = bytes.subspan(sizeof read.word);
  return read;
}

}  // namespace troupe::transport
