#include <algorithm>
#include <cassert>

#include "core/byte_text.h"
#include "schedules/check/rules.h"

namespace troupe::schedules {
namespace {

/// Tracks the bytes that a device keeps while it plays its lane.
class Keeper {
 public:
  explicit Keeper(const MemoryBudget& budget) : budget_(budget) {}

  std::int64_t kept() const { return kept_; }

  void allocate(Action action) {
    const MemoryBudget::Stage& stage = budget_.stages[action.stage];
    if (action.kind == Kind::forward)
      kept_ += action.flags & Action::checkpointed ? stage.input : stage.stash;
    if (action.kind == Kind::recompute) kept_ += stage.stash;
  }

  void free(Action action) {
    const MemoryBudget::Stage& stage = budget_.stages[action.stage];
    if (action.kind == Kind::recompute) kept_ -= stage.input;
    if (action.kind == Kind::backward) kept_ -= stage.stash;
    if (action.kind == Kind::backward_input) kept_ -= stage.stash - stage.weight;
    if (action.kind == Kind::backward_weight) kept_ -= stage.weight;
  }

 private:
  const MemoryBudget& budget_;
  std::int64_t kept_ = 0;
};

/// Lists the passes up to `place` whose stash is not freed before `group`: "0F1 0F2 and 3 more".
std::string holders(const Lane& lane, std::size_t group, std::size_t place) {
  Lane held;
  for (std::size_t k = 0; k <= place; ++k) {
    if (lane[k].kind == Kind::forward) held.push_back(lane[k]);
    if (gives_weight_gradient(lane[k].kind) && k < group)
      std::erase_if(held, [&](Action action) {
        return action.stage == lane[k].stage && action.micro_batch == lane[k].micro_batch;
      });
  }
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t k = 0; k < held.size() && k < most; ++k) {
    held[k].flags &= ~Action::with_next;
    text += (k > 0 ? " " : "") + to_string(held[k]);
  }
  if (held.size() > most) text += " and " + std::to_string(held.size() - most) + " more";
  return text;
}

}  // namespace

void check_memory(const Schedule& schedule, const MemoryBudget& budget, Findings& findings) {
  assert(budget.stages.size() == static_cast<std::size_t>(schedule.stages));
  assert(budget.caps.size() == schedule.lanes.size());
  for (int d = 0; d < schedule.devices(); ++d) {
    const Lane& lane = schedule.lanes[d];
    Keeper keeper(budget);
    std::size_t group = 0;  // The group's start. Overlapping actions allocate before they free.
    for (std::size_t k = 0; k < lane.size(); ++k) {
      keeper.allocate(lane[k]);
      if (keeper.kept() > budget.caps[d]) {
        findings.add(Rule::memory, d, k,
                     "device " + std::to_string(d) + " comes to " + byte_text(keeper.kept()) +
                         " at " + to_string(lane[k]) + ", " +
                         byte_text(keeper.kept() - budget.caps[d]) + " more than its " +
                         byte_text(budget.caps[d]) + "; it keeps " + holders(lane, group, k));
        break;
      }
      if (lane[k].flags & Action::with_next) continue;
      for (; group <= k; ++group) keeper.free(lane[group]);
    }
  }
}

}  // namespace troupe::schedules
