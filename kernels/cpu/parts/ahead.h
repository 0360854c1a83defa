#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/cpu/parts/product.h"

namespace troupe::kernels::cpu {

/// A memory area of `count` lines of `bytes` bytes each, `stride` bytes apart.
struct Lines {
  const void* data = nullptr;
  std::int64_t count = 0;
  std::int64_t stride = 0;
  std::int64_t bytes = 0;

  /// Returns part i of `shares` nearly equal parts.
  Lines share(std::int64_t i, std::int64_t shares) const {
    const std::int64_t first = i * count / shares, end = (i + 1) * count / shares;
    return {static_cast<const char*>(data) + first * stride, end - first, stride, bytes};
  }
};

template <class Number>
Lines lines_of(const Matrix<Number>& matrix, std::int64_t rows, std::int64_t columns) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(Number));
  if (matrix.order == Order::by_column) std::swap(rows, columns);
  return {matrix.data, rows, matrix.stride * size, columns * size};
}

template <class Number>
Lines lines_of(const Panels<Number>& panels, std::int64_t depth, std::int64_t columns) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(Unit<Number>));
  const std::int64_t deep = units<Number>(depth);
  if (panels.step == panel_columns)
    return {panels.data, panel_count(columns), panels.stride * size, deep * panel_columns * size};
  return {panels.data, deep, panels.step * size, columns * size};
}

/// A prefetcher for the next operands of a product, one cache line at a time: many fetches at once
/// would delay the loads that the current product waits for. It fetches into the second-level
/// cache, because the operands in use need the first.
class Ahead {
 public:
  /// The steps of a product between two calls of fetch().
  static constexpr int step = 8;

  /// Fetches `first` and then `second`, spread over `steps` steps.
  Ahead(const Lines& first, const Lines& second, std::int64_t steps) : second_(second) {
    const auto lines = cache_lines(first) + cache_lines(second);
    const auto calls = std::max<std::int64_t>(1, steps / step);
    pace_ = std::clamp<std::uintptr_t>(
        cache_line * static_cast<std::uintptr_t>(lines) / static_cast<std::uintptr_t>(calls), 1,
        cache_line);
    begin(first);
  }

  /// Fetches a line. It may be the one of the last call: to fetch it again costs less than to find
  /// out that it is not due.
  void fetch() {
    __builtin_prefetch(reinterpret_cast<const void*>(at_), 0, 2);
    at_ += pace_;
    if (at_ >= end_) next();
  }

 private:
  static constexpr std::uintptr_t cache_line = 64;

  static std::uintptr_t address(const Lines& lines) {
    return reinterpret_cast<std::uintptr_t>(lines.data);
  }
  /// Returns an upper bound: a line may begin and end within a cache line.
  static std::int64_t cache_lines(const Lines& lines) {
    return lines.count * (lines.bytes / static_cast<std::int64_t>(cache_line) + 1);
  }

  void begin(const Lines& lines) {
    now_ = lines;
    if (now_.count == 0 || now_.bytes == 0) return finish();
    at_ = address(now_) / cache_line * cache_line;
    end_ = address(now_) + static_cast<std::uintptr_t>(now_.bytes);
  }
  void next() {
    if (--now_.count > 0) now_.data = static_cast<const char*>(now_.data) + now_.stride;
    begin(now_);
  }
  void finish() {
    if (second_.count > 0) {
      const Lines lines = second_;
      second_ = {};
      return begin(lines);
    }
    // Nothing is left: go on from this object's own address. A prefetch never faults.
    at_ = reinterpret_cast<std::uintptr_t>(this);
    end_ = UINTPTR_MAX;
  }

  std::uintptr_t at_ = 0, end_ = 0;
  std::uintptr_t pace_ = 1;  // In bytes a call.
  Lines now_, second_;
};

}  // namespace troupe::kernels::cpu
