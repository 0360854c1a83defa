#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::actors {

/// The last numbers of a sequence, at most `most` of them.
class LastNumbers {
 public:
  explicit LastNumbers(std::size_t most) : most_(most) {}

  void add(double number) {
    if (numbers_.size() < most_)
      numbers_.push_back(number);
    else
      numbers_[next_] = number;
    next_ = (next_ + 1) % most_;
  }
  std::size_t count() const { return numbers_.size(); }
  bool is_full() const { return numbers_.size() == most_; }
  /// Returns the median. There must be a number.
  double median() const;
  /// Returns the median distance from the median, as a part of the median.
  double spread() const;
  /// Returns how many of the newest numbers in a row are at least `least`.
  std::size_t latest_from(double least) const;

 private:
  std::size_t most_;
  std::size_t next_ = 0;
  std::vector<double> numbers_;
};

/// Returns the middle number, or the lower one of two. There must be a number.
inline double lower_median(std::vector<double> numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>((numbers.size() - 1) / 2);
  std::ranges::nth_element(numbers, middle);
  return *middle;
}

/// A quantity that is measured once a step: its median over the last steps, and its median over the
/// undisturbed steps before them.
class RunningMedian {
 public:
  static constexpr std::size_t window = 8;  // Steps.
  static constexpr std::size_t most_windows = 16;
  static constexpr std::size_t least_windows = 3;

  /// `calm`: the quantity is not suspected to be disturbed now, so the steps may count as usual.
  void add(double number, bool calm);
  /// Returns nothing until enough steps were measured.
  std::optional<double> now() const { return now_; }
  /// Returns the median over the undisturbed steps, or nothing until there are enough.
  std::optional<double> before() const { return before_; }
  /// Returns how far a number usually is from the median, as a part of it; 0 until it is known.
  double spread() const { return spread_; }
  /// Returns how many of the newest numbers in a row are at least `least`; at most 2 * `window`.
  std::size_t latest_from(double least) const { return longer_.latest_from(least); }

 private:
  LastNumbers recent_{window};
  LastNumbers longer_{2 * window};
  LastNumbers windows_{most_windows};  // Medians of windows.
  // The newest whole window. It waits for a window without a suspicion before it counts.
  std::optional<double> pending_;
  std::size_t since_window_ = 0;
  LastNumbers spreads_{most_windows};  // Spreads of windows.
  std::optional<double> now_, before_;
  double spread_ = 0;
};

}  // namespace troupe::actors
