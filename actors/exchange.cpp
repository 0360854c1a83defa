#include "actors/exchange.h"

#include <set>
#include <utility>

#include "models/train/shared_parameters.h"
#include "models/train/stage.h"

namespace troupe::actors {
namespace {

std::vector<models::Parameter> parameters_of(const RunSpec& spec, int stage) {
  return models::Stage(*spec.model, spec.stages[static_cast<std::size_t>(stage)], {}).parameters();
}

const std::vector<models::Section>& sections_of(const RunSpec& spec, int stage) {
  return spec.sections[static_cast<std::size_t>(stage)];
}

/// Returns the parts of the owner's sections that another stage uses, in that stage's slots.
std::vector<Giving> lent(const RunSpec& spec, int owner, int user) {
  std::vector<Giving> givings;
  const auto owned = parameters_of(spec, owner), used = parameters_of(spec, user);
  for (int section = 0; section < static_cast<int>(sections_of(spec, owner).size()); ++section) {
    auto seen =
        models::seen_from(used, sections_of(spec, owner)[static_cast<std::size_t>(section)], owned);
    if (!seen.pieces.empty())
      givings.push_back({user, optimizer_of(spec, {owner, section}), std::move(seen)});
  }
  return givings;
}

}  // namespace

void cut_stages(RunSpec& spec, Exchange exchange) {
  const auto shared = models::shared_parameters(*spec.model, spec.stages);
  const RoundPtr usual = spec.round(0, 1);
  spec.sections.clear();
  for (int stage = 0; stage < static_cast<int>(spec.stages.size()); ++stage) {
    const bool is_server = exchange == Exchange::server;
    const int count = is_server ? 1 : static_cast<int>(holders_of(*usual, stage).size());
    spec.sections.push_back(models::cut_into_sections(spec.optimizer, spec.staleness,
                                                      parameters_of(spec, stage),
                                                      models::borrowed_by(shared, stage), count));
  }
}

int optimizers_of(const RunSpec& spec) {
  return static_cast<int>(spec.sections.size() * spec.sections[0].size());
}

OptimizerPlace place_of(const RunSpec& spec, int optimizer) {
  const int sections = static_cast<int>(spec.sections[0].size());
  return {optimizer / sections, optimizer % sections};
}

int optimizer_of(const RunSpec& spec, OptimizerPlace place) {
  return place.stage * static_cast<int>(spec.sections[0].size()) + place.section;
}

Holder home_of(const RunSpec& spec, int optimizer) {
  const auto [stage, section] = place_of(spec, optimizer);
  return holders_of(*spec.round(0, 1), stage)[static_cast<std::size_t>(section)];
}

std::vector<Giving> given_by(const RunSpec& spec, int stage) {
  std::vector<Giving> givings;
  for (int section = 0; section < static_cast<int>(sections_of(spec, stage).size()); ++section)
    givings.push_back({stage, optimizer_of(spec, {stage, section}),
                       sections_of(spec, stage)[static_cast<std::size_t>(section)]});
  std::set<int> owners;
  for (const auto& shared : models::shared_parameters(*spec.model, spec.stages))
    if (models::borrows(shared, stage)) owners.insert(shared.stages[0]);
  for (const int owner : owners)
    for (auto& giving : lent(spec, owner, stage)) givings.push_back(std::move(giving));
  return givings;
}

std::vector<Giving> given_to(const RunSpec& spec, int optimizer) {
  const auto [stage, section] = place_of(spec, optimizer);
  std::vector<Giving> givings{
      {stage, optimizer, sections_of(spec, stage)[static_cast<std::size_t>(section)]}};
  std::set<int> users;
  for (const auto& shared : models::shared_parameters(*spec.model, spec.stages))
    for (const int user : shared.stages)
      if (shared.stages[0] == stage && user != stage) users.insert(user);
  for (const int user : users)
    for (auto& giving : lent(spec, stage, user))
      if (giving.optimizer == optimizer) givings.push_back(std::move(giving));
  return givings;
}

}  // namespace troupe::actors
