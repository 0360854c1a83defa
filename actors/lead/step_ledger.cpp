#include "actors/lead/step_ledger.h"

#include <algorithm>
#include <cmath>

namespace troupe::actors {

double StepLedger::Entry::gradient_norm(ClipScope clip) const {
  if (clip == ClipScope::all_stages) return *norms[0];
  // All optimizers of a stage have the same norm.
  const std::size_t sections = norms.size() / static_cast<std::size_t>(stages);
  double squares = 0;
  for (std::size_t i = 0; i < norms.size(); i += sections) squares += *norms[i] * *norms[i];
  return std::sqrt(squares);
}

/// Stages without penalties count with their plain norm.
std::optional<double> StepLedger::Entry::penalised_norm(ClipScope clip) const {
  const auto is_known = [](const auto& norm) { return norm.has_value(); };
  if (clip == ClipScope::all_stages || std::ranges::none_of(penalised_norms, is_known)) return {};
  const std::size_t sections = norms.size() / static_cast<std::size_t>(stages);
  double squares = 0;
  for (std::size_t i = 0; i < norms.size(); ++i) {
    if (penalised_norms[i])
      squares += *penalised_norms[i] * *penalised_norms[i];
    else if (i % sections == 0)
      squares += *norms[i] * *norms[i];
  }
  return std::sqrt(squares);
}

StepLedger::Entry& StepLedger::entry(std::int64_t step) {
  const auto [found, is_new] = entries_.try_emplace(step);
  if (is_new) {
    found->second.losses = CountedLosses(micro_batches_);
    found->second.samples.resize(static_cast<std::size_t>(micro_batches_));
    found->second.contents.resize(static_cast<std::size_t>(micro_batches_));
    found->second.stages = stages_;
    found->second.norms.resize(static_cast<std::size_t>(optimizers_));
    found->second.penalised_norms.resize(static_cast<std::size_t>(optimizers_));
    found->second.late.resize(static_cast<std::size_t>(stages_));
  }
  return found->second;
}

StepLedger::Entry& StepLedger::add(const MicroBatchLoss& loss) {
  auto& to = entry(loss.step);
  to.losses.add(loss);
  to.samples.at(static_cast<std::size_t>(loss.index)) = loss.samples;
  to.contents.at(static_cast<std::size_t>(loss.index)) = loss.content;
  return to;
}

StepLedger::Entry& StepLedger::add(const Divergence& divergence) {
  auto& to = entry(divergence.step);
  if (!to.divergence) to.divergence = divergence;
  return to;
}

StepLedger::Entry& StepLedger::add(const StepDone& done) {
  auto& to = entry(done.step);
  to.norms.at(static_cast<std::size_t>(done.optimizer)) = done.norm;
  to.penalised_norms.at(static_cast<std::size_t>(done.optimizer)) = done.penalised_norm;
  if (!to.done) to.done = done;
  ++to.steps_done;
  return to;
}

StepLedger::Entry& StepLedger::add(const LateGradients& late) {
  auto& to = entry(late.step);
  to.late.at(static_cast<std::size_t>(late.stage)) = late.metrics;
  return to;
}

bool StepLedger::has(const MicroBatchLoss& loss) const {
  const auto found = entries_.find(loss.step);
  return found != entries_.end() && found->second.losses.is_known(loss.index);
}

bool StepLedger::has(const StepDone& done) const {
  const auto found = entries_.find(done.step);
  return found != entries_.end() &&
         found->second.norms.at(static_cast<std::size_t>(done.optimizer));
}

bool StepLedger::complete(std::int64_t step) const {
  const auto found = entries_.find(step);
  return found != entries_.end() && found->second.steps_done == optimizers_ &&
         found->second.losses.left() == 0;
}

std::optional<double> StepLedger::loss(std::int64_t step) const {
  const auto found = entries_.find(step);
  if (found == entries_.end() || found->second.losses.left() > 0) return {};
  return found->second.losses.mean();
}

std::optional<double> StepLedger::norm(std::int64_t step, ClipScope clip) const {
  if (!complete(step)) return {};
  const auto& known = entries_.at(step);
  if (known.done->is_skipped) return {};
  return known.gradient_norm(clip);
}

std::string StepLedger::missing(std::int64_t step) const {
  const auto found = entries_.find(step);
  const int left = found == entries_.end() ? micro_batches_ : found->second.losses.left();
  if (left > 0) return std::to_string(left) + " of " + std::to_string(micro_batches_) + " losses";
  const auto& norms = found->second.norms;
  const auto not_done = std::ranges::find(norms, std::optional<double>());
  if (not_done != norms.end())
    return "the new weights of stage " +
           std::to_string((not_done - norms.begin()) / (optimizers_ / stages_));
  return "devices that are not through";
}

}  // namespace troupe::actors
