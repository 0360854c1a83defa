#include "apps/head/leader.h"

#include <utility>

#include "actors/caf_shim.h"

namespace troupe::apps {

void Leader::change(const caf::actor& leader) {
  const std::lock_guard lock(mutex_);
  leader_ = leader;
  if (!leader_) return;
  if (is_paused_) actors::caf_shim::post(leader_, actors::Pause{});
  if (is_stopped_) actors::caf_shim::post(leader_, actors::StopNow{});
  for (auto& boundary_change : std::exchange(early_, {}))
    actors::caf_shim::post(leader_, std::move(boundary_change));
}

void Leader::leave(const std::string& state) {
  std::vector<actors::BoundaryChange> early;
  {
    const std::lock_guard lock(mutex_);
    ended_ = state;
    early = std::exchange(early_, {});
  }
  for (const auto& boundary_change : early) boundary_change.done(Error{"the run has ended"});
}

bool Leader::is_there() const {
  const std::lock_guard lock(mutex_);
  return bool(leader_);
}

// What is asked is kept as it is told: whoever comes to lead meanwhile hears of it either way.

void Leader::stop_now() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  if (leader_) actors::caf_shim::post(leader_, actors::StopNow{});
}

void Leader::pause(bool paused) {
  const std::lock_guard lock(mutex_);
  is_paused_ = paused;
  if (!leader_) return;
  paused ? actors::caf_shim::post(leader_, actors::Pause{})
         : actors::caf_shim::post(leader_, actors::Resume{});
}

bool Leader::is_paused() const {
  const std::lock_guard lock(mutex_);
  return is_paused_;
}

void Leader::hold(actors::BoundaryChange boundary_change) {
  std::string state;
  {
    const std::lock_guard lock(mutex_);
    if (leader_) return actors::caf_shim::post(leader_, std::move(boundary_change));
    if (ended_.empty()) return early_.push_back(std::move(boundary_change));
    state = ended_;
  }
  boundary_change.done(Error{"the run '" + run_ + "' is not under way: it is " + state});
}

}  // namespace troupe::apps
