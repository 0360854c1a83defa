#pragma once

#include <cuda_runtime.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace troupe::kernels::cuda {

/// Recorded work for a queue. Each piece is a function that gives it to a queue, and the function's
/// arguments as bytes. Lists of equal bytes are equal work.
class WorkList {
 public:
  /// The recorded arguments, read back in order.
  class Told {
   public:
    explicit Told(const std::byte* at) : at_(at) {}
    template <class T>
    T next() {
      std::array<std::byte, sizeof(T)> bytes;
      std::memcpy(bytes.data(), at_, sizeof(T));
      at_ += sizeof(T);
      return std::bit_cast<T>(bytes);
    }

   private:
    const std::byte* at_;
  };
  using Give = void (*)(Told told, cudaStream_t queue);

  template <class... Things>
  void add(Give give, const Things&... things) {
    ++pieces_;
    append(give);
    append((std::size_t{0} + ... + sizeof(Things)));
    (append(things), ...);
  }
  /// Gives all pieces to a queue, in order.
  void give_to(cudaStream_t queue) const;
  void clear();

  std::size_t pieces() const { return pieces_; }
  std::uint64_t hash() const;
  friend bool operator==(const WorkList&, const WorkList&) = default;

 private:
  template <class T>
  void append(T thing) {
    static_assert(std::is_trivially_copyable_v<T>);
    // Padding bytes are arbitrary and would make equal arguments differ. GCC 12 clears wrong bytes
    // if a member is an array of structs that exceeds 64 bytes. Arguments over 256 bytes therefore
    // keep their padding and repeat only by chance; smaller ones must not have such a member.
#if __has_builtin(__builtin_clear_padding)
    if constexpr (sizeof(T) <= 256) __builtin_clear_padding(&thing);
#endif
    const auto* begin = reinterpret_cast<const std::byte*>(&thing);
    bytes_.insert(bytes_.end(), begin, begin + sizeof(T));
  }

  std::size_t pieces_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace troupe::kernels::cuda
