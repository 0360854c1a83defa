#include "core/memory/free_ranges.h"

#include <algorithm>
#include <iterator>

namespace troupe {

std::optional<std::size_t> FreeRanges::take(std::size_t length) {
  const auto found = std::find_if(ranges_.begin(), ranges_.end(),
                                  [length](const auto& range) { return range.second >= length; });
  if (found == ranges_.end()) return {};
  const auto [begin, there] = *found;
  ranges_.erase(found);
  if (there > length) ranges_.emplace(begin + length, there - length);
  return begin;
}

std::optional<std::size_t> FreeRanges::take_highest(std::size_t length) {
  const auto found = std::find_if(ranges_.rbegin(), ranges_.rend(),
                                  [length](const auto& range) { return range.second >= length; });
  if (found == ranges_.rend()) return {};
  auto& [begin, there] = *found;
  const std::size_t end = begin + there;
  there -= length;
  if (there == 0) ranges_.erase(std::prev(found.base()));
  return end - length;
}

void FreeRanges::give(std::size_t begin, std::size_t length) {
  const auto range = ranges_.emplace(begin, length).first;
  if (const auto next = std::next(range); next != ranges_.end() && begin + length == next->first) {
    range->second += next->second;
    ranges_.erase(next);
  }
  if (range == ranges_.begin()) return;
  if (const auto before = std::prev(range); before->first + before->second == begin) {
    before->second += range->second;
    ranges_.erase(range);
  }
}

std::size_t FreeRanges::total() const {
  std::size_t total = 0;
  for (const auto& [begin, length] : ranges_) total += length;
  return total;
}

FreeRanges::Range FreeRanges::last() const {
  if (ranges_.empty()) return {};
  const auto& [begin, length] = *ranges_.rbegin();
  return {begin, length};
}

}  // namespace troupe
