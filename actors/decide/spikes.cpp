#include "actors/decide/spikes.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "actors/decide/running_median.h"

namespace troupe::actors {
namespace {

std::string short_text(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", number);
  return text;
}

/// A kind of number that a rule judges: its name, and its factor with the key.
struct Judged {
  const char* name;
  const char* key;
  double factor;
};

std::optional<std::string> far_above(const Judged& judged, double number,
                                     std::span<const double> before, std::int64_t window) {
  if (std::ssize(before) < window) return {};
  const double median = lower_median({before.begin(), before.end()});
  if (!(median > 0) || number <= judged.factor * median) return {};
  return std::string(judged.name) + " is " + short_text(number) + ", and the median of " +
         std::to_string(window) + " steps before is " + short_text(median) + " (" + judged.key +
         " = " + short_text(judged.factor) + ")";
}

}  // namespace

std::optional<std::string> spikes(double loss, std::span<const double> before,
                                  const SpikeRule& rule) {
  if (!std::isfinite(loss)) return "the loss is not a finite number";
  return far_above({"the loss", "train.spike_factor", rule.factor}, loss, before, rule.window);
}

std::optional<std::string> norm_spikes(double norm, std::span<const double> before,
                                       const SpikeRule& rule) {
  if (rule.norm_factor == 0) return {};
  return far_above({"the gradient norm", "train.spike_norm_factor", rule.norm_factor}, norm, before,
                   rule.window);
}

std::optional<std::string> ends_at_spike(std::int64_t step, std::span<const std::int64_t> left_out,
                                         const SpikeRule& rule) {
  if (rule.action != SpikeRule::Action::skip)
    return "train.on_spike = \"stop\"; resume with train.on_spike = \"skip\" to leave out the "
           "samples of this step";
  const auto recent = std::ranges::count_if(
      left_out, [&](std::int64_t other) { return other < step && step - other <= rule.window; });
  if (recent < rule.most) return {};
  return std::to_string(recent) + " of the " + std::to_string(rule.window) +
         " steps before were left out already (train.spike_most = " + std::to_string(rule.most) +
         "); a lower learning rate may help";
}

}  // namespace troupe::actors
