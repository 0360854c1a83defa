#include "actors/play/held_stage.h"

#include <algorithm>
#include <utility>

#include "actors/play/players.h"
#include "actors/round.h"
#include "models/train/shared_parameters.h"

namespace troupe::actors {
namespace {

HeldStage held(const RunSpec& spec, int stage, int holder, const models::Share& share) {
  const auto index = static_cast<std::size_t>(stage);
  HeldStage held;
  held.number = stage;
  held.holder = holder;
  held.share = share;
  const auto shared = models::shared_parameters(*spec.model, spec.stages);
  held.borrowed = models::borrowed_by(shared, stage);
  for (const auto& parameter : shared)
    for (const int user : parameter.stages)
      if (parameter.stages[0] == stage && user != stage)
        held.lent.push_back({parameter.name, user});
  held.givings = given_by(spec, stage);
  held.published.resize(spec.sections[index].size());
  held.stage =
      std::make_shared<models::TrainingStage>(*spec.model, spec.stages[index],
                                              models::StageOptions{.precision = spec.precision,
                                                                   .keep = spec.keep[index],
                                                                   .seed = spec.seed,
                                                                   .short_rows = spec.short_rows},
                                              spec.staleness, spec.optimizer, held.borrowed);
  if (spec.measures_staleness) held.stage->measure();
  return held;
}

}  // namespace

Status HeldStage::expects(const NewWeights& part) const {
  const auto& weights = *part.version.weights;
  const auto found = "found version " + std::to_string(weights.version) + " of the weights";
  if (published.at(static_cast<std::size_t>(part.section))) return Error{found + " twice"};
  if (!has_weights && std::ranges::any_of(weights.slots, [](const models::Weight& slot) {
        return slot.value.empty();
      }))
    return Error{found + " without all of its parameters, wanted a complete first version"};
  if (version && weights.version != *version + 1)
    return Error{found + ", wanted version " + std::to_string(*version + 1)};
  for (const auto& other : published) {
    if (!other) continue;
    const auto& others = *other->version.weights;
    if (others.version != weights.version)
      return Error{found + ", wanted version " + std::to_string(others.version) +
                   " as from another section"};
    if (others.loss_scale != weights.loss_scale)
      return Error{found + " with another loss scale than from another section"};
  }
  return Done{};
}

int HeldStage::missing_section() const {
  const auto found =
      std::ranges::find_if(published, [](const auto& part) { return !part.has_value(); });
  return static_cast<int>(found - published.begin());
}

std::optional<WorkTime> HeldStage::worked_here() const {
  const auto own = static_cast<std::size_t>(holder);
  return own < published.size() ? std::optional(published[own]->worked) : std::nullopt;
}

std::vector<models::Version> HeldStage::take_published() {
  std::vector<models::Version> parts;
  version = published[0]->version.weights->version;
  for (auto& part : published) parts.push_back(std::exchange(part, {})->version);
  return parts;
}

std::vector<HeldStage> stages_held(const RunSpec& spec, int replica, int device) {
  std::vector<HeldStage> all;
  const RoundPtr usual = spec.round(0, 1);
  for (int stage = 0; stage < usual->schedule.stages; ++stage) {
    const auto holders = holders_of(*usual, stage);
    for (std::size_t i = 0; i < holders.size(); ++i)
      if (holders[i].replica == replica && holders[i].device == device)
        all.push_back(held(spec, stage, static_cast<int>(i), holders[i].share));
  }
  return all;
}

std::string missing_optimizer(const RunSpec& spec, const HeldStage& held) {
  const int missing = optimizer_of(spec, {held.number, held.missing_section()});
  return title_of(spec, {PlayerId::Kind::optimizer, missing});
}

}  // namespace troupe::actors
