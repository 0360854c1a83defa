#include "kernels/cuda/machine/work_list.h"

namespace troupe::kernels::cuda {

void WorkList::give_to(cudaStream_t queue) const {
  const std::byte* const end = bytes_.data() + bytes_.size();
  for (const std::byte* at = bytes_.data(); at != end;) {
    Told piece(at);
    const auto give = piece.next<Give>();
    const auto size = piece.next<std::size_t>();
    give(piece, queue);
    at += sizeof give + sizeof size + size;
  }
}

void WorkList::clear() {
  pieces_ = 0;
  bytes_.clear();
}

/// Mixes in each word with a multiplication, which reaches all higher bits, and a shift back down.
std::uint64_t WorkList::hash() const {
  constexpr std::uint64_t odd = 0x9E3779B97F4A7C15u;
  std::uint64_t sum = bytes_.size();
  for (std::size_t at = 0; at < bytes_.size(); at += sizeof sum) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes_.data() + at, std::min(sizeof word, bytes_.size() - at));
    sum = (sum ^ word) * odd;
    sum ^= sum >> 32;
  }
  return sum;
}

}  // namespace troupe::kernels::cuda
