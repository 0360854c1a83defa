#include "apps/head/supervisor_handle.h"

#include <utility>

#include "actors/caf_shim.h"

namespace troupe::apps {

void SupervisorHandle::change(const caf::actor& supervisor) {
  const std::lock_guard lock(mutex_);
  supervisor_ = supervisor;
  if (!supervisor_) return;
  if (is_paused_) actors::caf_shim::post(supervisor_, actors::Pause{});
  if (is_stopped_) actors::caf_shim::post(supervisor_, actors::StopNow{});
  for (auto& boundary_change : std::exchange(early_, {}))
    actors::caf_shim::post(supervisor_, std::move(boundary_change));
}

void SupervisorHandle::leave(const std::string& state) {
  std::vector<actors::BoundaryChange> early;
  {
    const std::lock_guard lock(mutex_);
    ended_ = state;
    early = std::exchange(early_, {});
  }
  for (const auto& boundary_change : early) boundary_change.done(Error{"the run has ended"});
}

bool SupervisorHandle::is_there() const {
  const std::lock_guard lock(mutex_);
  return bool(supervisor_);
}

// What is asked is kept as it is told: whoever comes to lead meanwhile hears of it either way.

void SupervisorHandle::stop_now() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  if (supervisor_) actors::caf_shim::post(supervisor_, actors::StopNow{});
}

void SupervisorHandle::pause(bool paused) {
  const std::lock_guard lock(mutex_);
  is_paused_ = paused;
  if (!supervisor_) return;
  paused ? actors::caf_shim::post(supervisor_, actors::Pause{})
         : actors::caf_shim::post(supervisor_, actors::Resume{});
}

bool SupervisorHandle::is_paused() const {
  const std::lock_guard lock(mutex_);
  return is_paused_;
}

void SupervisorHandle::hold(actors::BoundaryChange boundary_change) {
  std::string state;
  {
    const std::lock_guard lock(mutex_);
    if (supervisor_) return actors::caf_shim::post(supervisor_, std::move(boundary_change));
    if (ended_.empty()) return early_.push_back(std::move(boundary_change));
    state = ended_;
  }
  boundary_change.done(Error{"the run '" + run_ + "' is not under way: it is " + state});
}

}  // namespace troupe::apps
