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
  numbers_.erase(numbers_.upper_bound(after), numbers_.end());
  const bool is_behind = std::exchange(known_until_, after) < after;
  if (spec.spikes.action == SpikeRule::Action::none || !spec.ledger) return Done{};
  if (!is_behind && std::ssize(numbers_) >= spec.spikes.window) return Done{};
  auto read = spec.ledger->numbers_until(after, spec.spikes.window);
  if (!read) return within("the losses of earlier steps", read.error());
  numbers_ = std::move(*read);
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

std::optional<double> SpikeWatch::done(const RunSpec& spec, std::int64_t step,
                                       const StepLedger::Entry& entry) {
  if (spec.spikes.action == SpikeRule::Action::none) return {};
  known_until_ = step;
  if (entry.done->is_skipped) return {};
  std::optional<double> norm;
  if (spec.spikes.norm_factor > 0) norm = entry.gradient_norm(spec.clip);
  numbers_.insert_or_assign(step, storage::StepNumbers{entry.losses.mean(), norm});
  const auto most = spec.spikes.window + steps_back;
  while (std::ssize(numbers_) > most) numbers_.erase(numbers_.begin());
  return norm;
}

std::optional<Spike> SpikeWatch::find(const RunSpec& spec, std::int64_t step,
                                      std::optional<double> loss,
                                      std::optional<double> norm) const {
  if (spec.spikes.action == SpikeRule::Action::none || spec.leaves_out(step) || !loss) return {};
  if (const auto noted = not_finite_.find(step); noted != not_finite_.end())
    return Spike{step, noted->second.what, {}};
  const auto window = spec.spikes.window;
  if (const auto why = spikes(*loss, last_losses(window), spec.spikes))
    return Spike{step, *why, loss};
  if (!norm) return {};
  if (const auto why = norm_spikes(*norm, last_norms(window), spec.spikes))
    return Spike{step, *why, loss};
  return {};
}

std::vector<double> SpikeWatch::last_losses(std::int64_t count) const {
  std::vector<double> newest;
  for (auto at = numbers_.rbegin(); at != numbers_.rend() && std::ssize(newest) < count; ++at)
    newest.push_back(at->second.loss);
  return newest;
}

std::vector<double> SpikeWatch::last_norms(std::int64_t count) const {
  std::vector<double> newest;
  for (auto at = numbers_.rbegin(); at != numbers_.rend() && std::ssize(newest) < count; ++at) {
    if (!at->second.norm) return {};
    newest.push_back(*at->second.norm);
  }
  return newest;
}

}  // namespace troupe::actors
