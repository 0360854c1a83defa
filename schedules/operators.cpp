#include "schedules/operators.h"

#include <algorithm>
#include <cassert>
#include <map>

namespace troupe::schedules {
namespace {

/// Applies `change` to every lane of a copy of the schedule.
template <class Change>
Schedule with_lanes(const Schedule& schedule, Change change) {
  Schedule changed = schedule;
  for (Lane& lane : changed.lanes) lane = change(lane);
  return changed;
}

/// Calls `visit` with begin and end of each group; a single action is a group of one.
template <class Visit>
void for_each_group(const Lane& lane, Visit visit) {
  for (std::size_t begin = 0, end = 0; begin < lane.size(); begin = end) {
    end = begin + 1;
    while (lane[end - 1].flags & Action::with_next) ++end;
    visit(begin, end);
  }
}

std::map<int, std::size_t> last_gradients(const Lane& lane) {
  std::map<int, std::size_t> last;
  for (std::size_t k = 0; k < lane.size(); ++k)
    if (gives_weight_gradient(lane[k].kind)) last[lane[k].stage] = k;
  return last;
}

/// Inserts A after a stage's last weight gradient (or its group) and puts the O's at the end.
Lane with_updates_at_end(const Lane& lane) {
  const auto last = last_gradients(lane);
  Lane changed;
  Lane updates;
  for_each_group(lane, [&](std::size_t begin, std::size_t end) {
    changed.insert(changed.end(), lane.begin() + begin, lane.begin() + end);
    for (std::size_t k = begin; k < end; ++k)
      if (gives_weight_gradient(lane[k].kind) && last.at(lane[k].stage) == k) {
        changed.push_back(give(lane[k].stage));
        updates.push_back(update(lane[k].stage));
      }
  });
  changed.insert(changed.end(), updates.begin(), updates.end());
  return changed;
}

Lane with_gives(const Lane& lane) {
  Lane changed;
  for (const Action action : lane) {
    if (action.kind == Kind::update) {
      Action give = action;
      give.kind = Kind::give;
      changed.push_back(give);
    }
    changed.push_back(action);
  }
  return changed;
}

Lane without(const Lane& lane, bool (*unwanted)(Action)) {
  Lane changed;
  std::ranges::remove_copy_if(lane, std::back_inserter(changed), unwanted);
  return changed;
}

bool is_give(Action action) { return action.kind == Kind::give; }
bool is_update(Action action) { return action.kind == Kind::update; }
bool is_give_or_update(Action action) { return is_give(action) || is_update(action); }

}  // namespace

Schedule split_backward(const Schedule& schedule) {
  return with_lanes(schedule, [](const Lane& lane) {
    Lane changed;
    for_each_group(lane, [&](std::size_t begin, std::size_t end) {
      // A W cannot overlap with its own I, so it comes after the group.
      Lane weights;
      for (std::size_t k = begin; k < end; ++k) {
        Action action = lane[k];
        if (action.kind == Kind::backward) {
          action.kind = Kind::backward_input;
          weights.push_back(backward_weight(action.stage, static_cast<int>(action.micro_batch)));
        }
        changed.push_back(action);
      }
      changed.insert(changed.end(), weights.begin(), weights.end());
    });
    return changed;
  });
}

Schedule fuse_backward(const Schedule& schedule) {
  return with_lanes(schedule, [](const Lane& lane) {
    Lane changed;
    for (const Action action : lane) {
      const bool ends_pair =
          action.kind == Kind::backward_weight && !changed.empty() &&
          changed.back() == backward_input(action.stage, static_cast<int>(action.micro_batch));
      if (ends_pair)
        changed.back() = backward(action.stage, static_cast<int>(action.micro_batch));
      else
        changed.push_back(action);
    }
    return changed;
  });
}

Schedule with_recompute(const Schedule& schedule, std::vector<bool> stages) {
  assert(stages.size() == static_cast<std::size_t>(schedule.stages));
  for (const Lane& lane : schedule.lanes)
    for (const Action action : lane)
      if (action.kind == Kind::recompute) stages[action.stage] = false;
  return with_lanes(schedule, [&](const Lane& lane) {
    Lane changed;
    for_each_group(lane, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k)
        if (stages[lane[k].stage] && gives_input_gradient(lane[k].kind))
          changed.push_back(recompute(lane[k].stage, static_cast<int>(lane[k].micro_batch)));
      for (std::size_t k = begin; k < end; ++k) {
        changed.push_back(lane[k]);
        if (stages[lane[k].stage] && lane[k].kind == Kind::forward)
          changed.back().flags |= Action::checkpointed;
      }
    });
    return changed;
  });
}

Schedule passes_only(const Schedule& schedule) {
  return with_lanes(schedule, [](const Lane& lane) { return without(lane, is_give_or_update); });
}

Schedule with_updates(const Schedule& schedule) {
  const bool updates_amid_passes = std::ranges::any_of(schedule.lanes, [](const Lane& lane) {
    return std::ranges::any_of(lane, [](Action action) {
      return action.kind == Kind::update && (action.flags & Action::numbered);
    });
  });
  if (!updates_amid_passes) return with_lanes(passes_only(schedule), with_updates_at_end);
  return with_lanes(schedule, [](const Lane& lane) { return with_gives(without(lane, is_give)); });
}

Schedule with_update_every(const Schedule& schedule, int count) {
  assert(count >= 1);
  return with_lanes(passes_only(schedule), [&](const Lane& lane) {
    const auto last = last_gradients(lane);
    std::map<int, int> done;
    Lane changed;
    for_each_group(lane, [&](std::size_t begin, std::size_t end) {
      changed.insert(changed.end(), lane.begin() + begin, lane.begin() + end);
      for (std::size_t k = begin; k < end; ++k) {
        if (!gives_weight_gradient(lane[k].kind)) continue;
        const bool is_due = ++done[lane[k].stage] % count == 0;
        if (is_due || last.at(lane[k].stage) == k)
          changed.push_back(update_after(lane[k].stage, static_cast<int>(lane[k].micro_batch)));
      }
    });
    return changed;
  });
}

Schedule first_micro_batches(const Schedule& schedule, int count) {
  Schedule changed = with_lanes(schedule, [&](const Lane& lane) {
    Lane kept;
    for (const Action action : lane) {
      const bool is_of_one = has_micro_batch(action.kind) || (action.flags & Action::numbered) != 0;
      if (!is_of_one || action.micro_batch < static_cast<std::uint32_t>(count))
        kept.push_back(action);
      else if (!kept.empty() && (action.flags & Action::with_next) == 0)
        kept.back().flags &= static_cast<std::uint8_t>(~Action::with_next);
    }
    return kept;
  });
  changed.micro_batches = count;
  return changed;
}

}  // namespace troupe::schedules
