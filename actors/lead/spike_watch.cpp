#include "actors/lead/spike_watch.h"

#include <iterator>
#include <utility>

#include "actors/decide/spikes.h"
#include "actors/play/not_finite.h"

namespace troupe::actors {
namespace {

/// Attempts mostly begin a few steps back. Then no ledger is read.
constexpr std::int64_t steps_back = 1'000;

}  // namespace

Status SpikeWatch::begin(const RunSpec& spec, std::int64_t after) {
  not_finite_.clear();
  losses_.erase(losses_.upper_bound(after), losses_.end());
  const bool is_behind = std::exchange(known_until_, after) < after;
  if (spec.spikes.action == SpikeRule::Action::none || !spec.ledger) return Done{};
  if (!is_behind && std::ssize(losses_) >= spec.spikes.window) return Done{};
  auto read = spec.ledger->losses_until(after, spec.spikes.window);
  if (!read) return within("the losses of earlier steps", read.error());
  losses_ = std::move(*read);
  return Done{};
}

void SpikeWatch::note(const RunSpec& spec, const MicroBatchLoss& loss) {
  note(loss.step + 1, {loss.index, loss_not_finite(spec, loss)});
}

void SpikeWatch::note(const RunSpec& spec, const Divergence& divergence) {
  constexpr auto behind_losses = std::int64_t{1} << 32;
  note(divergence.step + 1,
       {behind_losses + divergence.optimizer, gradient_not_finite(spec, divergence)});
}

void SpikeWatch::note(std::int64_t step, NotFinite found) {
  const auto [known, is_new] = not_finite_.try_emplace(step, found);
  if (!is_new && found.order < known->second.order) known->second = std::move(found);
}

void SpikeWatch::done(const RunSpec& spec, std::int64_t step, std::optional<double> loss) {
  if (spec.spikes.action == SpikeRule::Action::none) return;
  known_until_ = step;
  if (loss) losses_.insert_or_assign(step, *loss);
  const auto most = spec.spikes.window + steps_back;
  while (std::ssize(losses_) > most) losses_.erase(losses_.begin());
}

std::optional<Spike> SpikeWatch::find(const RunSpec& spec, std::int64_t step,
                                      std::optional<double> loss) const {
  if (spec.spikes.action == SpikeRule::Action::none || spec.leaves_out(step) || !loss) return {};
  if (const auto noted = not_finite_.find(step); noted != not_finite_.end())
    return Spike{step, noted->second.what, {}};
  if (const auto why = spikes(*loss, last(spec.spikes.window), spec.spikes))
    return Spike{step, *why, loss};
  return {};
}

std::vector<double> SpikeWatch::last(std::int64_t count) const {
  std::vector<double> newest;
  for (auto at = losses_.rbegin(); at != losses_.rend() && std::ssize(newest) < count; ++at)
    newest.push_back(at->second);
  return newest;
}

}  // namespace troupe::actors
