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

/// Work for a queue, written down: each piece is a function that gives it to a queue, and what that
/// is told, as bytes. Lists of equal bytes are the same work.
class WorkList {
 public:
  /// What was told, read back in the same order.
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
  /// Gives all of it to a queue, in order.
  void give_to(cudaStream_t queue) const;
  void clear();

  std::size_t pieces() const { return pieces_; }
  std::uint64_t hash() const;
  friend bool operator==(const WorkList&, const WorkList&) = default;

 private:
  template <class T>
  void append(T thing) {
    static_assert(std::is_trivially_copyable_v<T>);
    // What lies between members is of chance, and would make equal things differ. GCC 12 clears
    // other bytes where an array of structs of more than 64 bytes is among the members: what is so
    // large stays as it is, and comes again by chance alone; nothing smaller may have one.
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
