#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schedules/check/check.h"
#include "schedules/check/rules.h"

namespace troupe::schedules {
namespace {

/// Returns whether the schedule contains an action of this kind.
bool has(const Schedule& schedule, Kind kind) {
  for (const Lane& lane : schedule.lanes)
    for (const Action action : lane)
      if (action.kind == kind) return true;
  return false;
}

/// The progress of one stage on a device.
struct Progress {
  std::optional<Action> gradient;  // The last action that made a weight gradient.
  std::optional<Action> given;     // The last A.
  std::optional<Action> updated;   // The last O.
  bool owes_update = false;        // Whether a gradient came that no O has used.
  std::optional<Kind> sharded;     // The last of G and U.
};

class UpdateRules {
 public:
  UpdateRules(const Schedule& schedule, Findings& findings)
      : schedule_(schedule),
        findings_(findings),
        gives_(has(schedule, Kind::give)),
        updates_(has(schedule, Kind::update)) {
    for (int d = 0; d < schedule.devices(); ++d)
      for (const Action action : schedule.lanes[d])
        if (action.kind == Kind::gather || action.kind == Kind::release)
          sharded_.insert({d, action.stage});
  }

  void ask(int device) {
    device_ = device;
    progress_.clear();
    const Lane& lane = schedule_.lanes[device];
    for (position_ = 0; position_ < lane.size(); ++position_) {
      const Action action = lane[position_];
      Progress& stage = progress_[action.stage];
      switch (action.kind) {
        case Kind::forward:
        case Kind::backward_input:
        case Kind::recompute:
          pass(action, stage);
          break;
        case Kind::backward:
        case Kind::backward_weight:
          pass(action, stage);
          if (stage.given && !is_numbered(*stage.given))
            wrong(to_string(action) + " comes after " + to_string(*stage.given) +
                  ", which gives the step's gradients away");
          stage.gradient = action;
          stage.owes_update = true;
          break;
        case Kind::give:
          give(action, stage);
          break;
        case Kind::update:
          update(action, stage);
          break;
        case Kind::gather:
        case Kind::release:
          shard(action, stage);
          break;
      }
    }
    if (gives_ || updates_)
      for (const auto& [stage, progress] : progress_)
        if (progress.owes_update)
          wrong("device " + std::to_string(device) + " has no O for stage " +
                std::to_string(stage) + " after " + to_string(*progress.gradient));
  }

 private:
  static bool is_numbered(Action action) { return action.flags & Action::numbered; }

  void wrong(std::string reason) {
    findings_.add(Rule::step_order, device_, position_, std::move(reason));
  }

  void pass(Action action, const Progress& stage) {
    if (stage.updated && !is_numbered(*stage.updated))
      wrong(to_string(action) + " comes after " + to_string(*stage.updated) +
            ", which ends the step of its stage");
    if (sharded_.contains({device_, action.stage}) && stage.sharded != Kind::gather)
      wrong(to_string(action) +
            " needs whole weights: a G of its stage must come before, and no U");
  }

  void give(Action action, Progress& stage) {
    if (!comes_in_turn(action, stage, stage.given)) return;
    const bool used =
        !stage.given || (stage.updated && stage.updated->micro_batch == stage.given->micro_batch);
    if (!used)
      wrong(to_string(action) + " comes before the O that uses " + to_string(*stage.given));
    stage.given = action;
  }

  void update(Action action, Progress& stage) {
    if (!comes_in_turn(action, stage, stage.updated)) return;
    const bool gave = stage.given && is_numbered(*stage.given) == is_numbered(action) &&
                      stage.given->micro_batch == action.micro_batch;
    if (gives_ && !gave)
      wrong(to_string(action) + " needs an A of its stage before it, and after its gradients");
    stage.updated = action;
    stage.owes_update = false;
  }

  /// Checks that an A or O follows a gradient, has its number (if numbered), and is not repeated.
  bool comes_in_turn(Action action, const Progress& stage, const std::optional<Action>& last) {
    if (last && (*last == action || is_numbered(*last) != is_numbered(action))) {
      wrong(to_string(action) + " comes after " + to_string(*last) +
            ": a stage has either one of them, or one with a number after each so many passes");
      return false;
    }
    if (!stage.gradient) {
      wrong(to_string(action) + " comes before any gradient of its stage");
      return false;
    }
    if (is_numbered(action) && stage.gradient->micro_batch != action.micro_batch) {
      wrong(to_string(action) + " comes after " + to_string(*stage.gradient) +
            "; its number must be that pass's");
      return false;
    }
    return true;
  }

  void shard(Action action, Progress& stage) {
    const Kind before = stage.sharded.value_or(Kind::release);
    if (before == action.kind)
      wrong(to_string(action) + (action.kind == Kind::gather
                                     ? " gathers weights that are whole already"
                                     : " releases weights that no G has gathered"));
    stage.sharded = action.kind;
  }

  const Schedule& schedule_;
  Findings& findings_;
  bool gives_;
  bool updates_;
  std::set<std::pair<int, int>> sharded_;
  int device_ = 0;
  std::size_t position_ = 0;
  std::map<int, Progress> progress_;
};

/// Checks that all stages update after the same micro-batches, so that a version number means one
/// state of the whole model. Skips schedules with several routes, which have no common order.
void check_agreement(const Schedule& schedule, Findings& findings) {
  if (schedule.routes.size() > 1) return;
  std::vector<std::vector<std::uint32_t>> updates(schedule.stages);
  for (const Lane& lane : schedule.lanes)
    for (const Action action : lane)
      if (action.kind == Kind::update) updates[action.stage].push_back(action.micro_batch);
  for (int stage = 1; stage < schedule.stages; ++stage) {
    if (updates[stage] == updates[0]) continue;
    const int device = schedule.routes[0][stage];
    findings.add(Rule::step_order, device, schedule.lanes[device].size(),
                 "stage " + std::to_string(stage) + " has " +
                     std::to_string(updates[stage].size()) +
                     " O's, but not after the same micro-batches as stage 0 has its " +
                     std::to_string(updates[0].size()));
  }
}

/// The micro-batches of one stage on one device, in lane order.
struct StageSteps {
  std::vector<std::uint32_t> gradients;
  std::vector<std::uint32_t> updates;  // The numbers of its O's.
};

std::string in_words(const std::vector<std::uint32_t>& micro_batches) {
  constexpr std::size_t shown = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(shown, micro_batches.size()); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(micro_batches[i]);
  return micro_batches.size() > shown ? text + ", ..." : text;
}

}  // namespace

Status check_steps(const Schedule& schedule, int step_every) {
  for (int device = 0; device < schedule.devices(); ++device) {
    std::map<int, StageSteps> stages;
    for (const Action action : schedule.lanes[device]) {
      if (gives_weight_gradient(action.kind))
        stages[action.stage].gradients.push_back(action.micro_batch);
      if (action.kind == Kind::update && (action.flags & Action::numbered) != 0)
        stages[action.stage].updates.push_back(action.micro_batch);
    }
    for (const auto& [stage, steps] : stages) {
      if (steps.updates.empty()) continue;
      const auto step_of = [&gradients = steps.gradients, step_every](std::size_t i) {
        return gradients[i] / static_cast<std::uint32_t>(step_every);
      };
      std::vector<std::uint32_t> ends;
      for (std::size_t i = 0; i < steps.gradients.size(); ++i)
        if (i + 1 == steps.gradients.size() || step_of(i) != step_of(i + 1))
          ends.push_back(steps.gradients[i]);
      if (steps.updates == ends) continue;
      return Error{"device " + std::to_string(device) + " of the schedule " + schedule.name +
                   " updates stage " + std::to_string(stage) + " after micro-batches " +
                   in_words(steps.updates) + ", but a step has " + std::to_string(step_every) +
                   " micro-batches for each replica, so its O's must come after " + in_words(ends) +
                   "; move the O's, or set pipeline.schedule to a name such as \"pipedream\" and "
                   "staleness.step_every to the micro-batches of a step"};
    }
  }
  return Done{};
}

void check_updates(const Schedule& schedule, Findings& findings) {
  UpdateRules rules(schedule, findings);
  for (int d = 0; d < schedule.devices(); ++d) rules.ask(d);
  if (findings.empty()) check_agreement(schedule, findings);
}

}  // namespace troupe::schedules
