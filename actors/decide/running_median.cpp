#include "actors/decide/running_median.h"

#include <cmath>

namespace troupe::actors {

double LastNumbers::median() const { return lower_median(numbers_); }

double LastNumbers::spread() const {
  const double middle = median();
  std::vector<double> distances;
  for (const double number : numbers_) distances.push_back(std::abs(number - middle));
  return middle > 0 ? lower_median(std::move(distances)) / middle : 0;
}

std::size_t LastNumbers::latest_from(double least) const {
  std::size_t found = 0;
  while (found < numbers_.size() && numbers_[(next_ + most_ - 1 - found) % most_] >= least) ++found;
  return found;
}

void RunningMedian::add(double number, bool calm) {
  recent_.add(number);
  longer_.add(number);
  if (!recent_.is_full()) return;
  now_ = recent_.median();
  if (spreads_.count() == 0) spread_ = recent_.spread();
  if (!calm) {
    pending_.reset();
    since_window_ = 0;
    return;
  }
  if (++since_window_ < window) return;
  since_window_ = 0;
  spreads_.add(recent_.spread());
  spread_ = spreads_.median();
  if (pending_) {
    windows_.add(*pending_);
    if (windows_.count() >= least_windows) before_ = windows_.median();
  }
  pending_ = now_;
}

}  // namespace troupe::actors
