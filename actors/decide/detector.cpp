#include "actors/decide/detector.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/units.h"

namespace troupe::actors {
namespace {

constexpr std::size_t most_gaps = 200;
constexpr int witnesses_that_count = 2;

std::string text_of(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", number);
  return text;
}

}  // namespace

void Pulses::heard(Time now) {
  const double gap = in_seconds(now - last_);
  last_ = now;
  if (gaps_.size() < most_gaps) {
    gaps_.push_back(gap);
  } else {
    sum_ -= gaps_[next_];
    squares_ -= gaps_[next_] * gaps_[next_];
    gaps_[next_] = gap;
    next_ = (next_ + 1) % most_gaps;
  }
  sum_ += gap;
  squares_ += gap * gap;
}

double Pulses::mean() const { return gaps_.empty() ? 0 : sum_ / static_cast<double>(count()); }

double Pulses::deviation() const {
  if (gaps_.empty()) return 0;
  return std::sqrt(std::max(0.0, squares_ / static_cast<double>(count()) - mean() * mean()));
}

double phi(const Pulses& pulses, Time now, const DetectorLimits& limits) {
  // A node without history is assumed to be as regular on average as it should be.
  const double mean = pulses.count() > 0 ? pulses.mean() : in_seconds(limits.heartbeat_every);
  const double unknown = 1 - static_cast<double>(pulses.count()) / most_gaps;
  const double deviation = std::max({pulses.deviation(), in_seconds(limits.least_deviation),
                                     unknown * in_seconds(limits.first_deviation)});
  const double silent = in_seconds(now - pulses.last());
  const double far = (silent - mean - in_seconds(limits.silence_floor)) / deviation;
  if (far <= 0) return 0;
  const double chance = std::erfc(far / std::sqrt(2.0)) / 2;
  if (chance > 0) return -std::log10(chance);
  // The probability underflows a double: use the tail exp(-x^2 / 2) / (x sqrt(2 pi)).
  return (far * far / 2 + std::log(far * std::sqrt(2 * M_PI))) / std::log(10.0);
}

double deadly_phi(const DetectorLimits& limits) {
  const double looks = in_seconds(limits.horizon) / in_seconds(limits.heartbeat_every);
  return std::log10(std::max(1, limits.nodes) * std::max(1.0, looks));
}

Presence judge(const Evidence& evidence, Time now, const DetectorLimits& limits) {
  using Is = Presence::Is;
  const double doubt = phi(evidence.pulses, now, limits);
  if (evidence.exited) return {Is::dead, doubt, "its process ended: " + *evidence.exited};
  if (evidence.closed && now - *evidence.closed >= limits.reconnect_patience)
    return {Is::dead, doubt,
            "its connection was closed, and it did not reconnect within " +
                text_of(in_seconds(limits.reconnect_patience)) + " s"};
  // Without a connection silence is no further evidence.
  if (evidence.closed) return {Is::suspect, doubt, "its connection was closed"};
  const bool is_missed = evidence.witnesses >= witnesses_that_count;
  const double deadly = deadly_phi(limits) / (is_missed ? 2 : 1);
  if (doubt < deadly && doubt <= limits.suspect) return {Is::alive, doubt, {}};
  const std::string silence = "no heartbeat for " +
                              text_of(in_seconds(now - evidence.pulses.last())) + " s: phi " +
                              text_of(doubt) + ", and " + text_of(deadly) + " is the limit";
  return {doubt >= deadly ? Is::dead : Is::suspect, doubt, silence};
}

std::vector<Presence> judge_all(const std::vector<Evidence*>& all, Time last_look,
                                Duration look_every, Time now, const DetectorLimits& limits) {
  const auto look = [&] {
    std::vector<Presence> found;
    found.reserve(all.size());
    for (const auto* evidence : all) found.push_back(judge(*evidence, now, limits));
    return found;
  };
  auto found = look();
  const Duration paused = now - last_look - look_every;
  if (paused <= limits.silence_floor) return found;
  const auto is_silent = [&](const Presence& one) { return one.phi > limits.suspect; };
  const auto silent = std::ranges::count_if(found, is_silent);
  if (3 * silent <= static_cast<std::ptrdiff_t>(found.size())) return found;
  for (auto* evidence : all) evidence->pulses.forgive(paused);
  return look();
}

}  // namespace troupe::actors
