#include "actors/lead/goodput.h"

#include <algorithm>

#include "core/units.h"

namespace troupe::actors {
namespace {

// The limit for a run that never saves.
constexpr std::size_t most_unsettled = 100'000;

}  // namespace

void Goodput::begun(std::int64_t step, caf_shim::TimePoint now) {
  if (!began_) {
    began_ = now;
    settled_ = step;
  }
  while (!since_.empty() && settled_ + std::ssize(since_) > step) {
    useful_ -= since_.back();
    since_.pop_back();
  }
  if (since_.empty()) settled_ = step;
}

void Goodput::done(caf_shim::Duration took) {
  useful_ += took;
  since_.push_back(took);
  if (since_.size() > most_unsettled) forget_oldest();
}

void Goodput::settled(std::int64_t step) {
  while (!since_.empty() && settled_ < step) forget_oldest();
}

void Goodput::forget_oldest() {
  since_.pop_front();
  ++settled_;
}

double Goodput::at(caf_shim::TimePoint now) const {
  if (!began_ || now - *began_ <= paused_) return 1;
  return std::clamp(in_seconds(useful_) / in_seconds(now - *began_ - paused_), 0.0, 1.0);
}

}  // namespace troupe::actors
