#include "apps/head/leader.h"

#include <utility>

#include "actors/rt.h"

namespace troupe::apps {

void Leader::change(const caf::actor& leader) {
  const std::lock_guard lock(mutex_);
  leader_ = leader;
  if (!leader_) return;
  if (is_paused_) actors::rt::post(leader_, actors::Pause{});
  if (is_stopped_) actors::rt::post(leader_, actors::StopNow{});
  for (auto& interlude : std::exchange(early_, {})) actors::rt::post(leader_, std::move(interlude));
}

void Leader::leave(const std::string& state) {
  std::vector<actors::Interlude> early;
  {
    const std::lock_guard lock(mutex_);
    ended_ = state;
    early = std::exchange(early_, {});
  }
  for (const auto& interlude : early) interlude.done(Error{"the run has ended"});
}

bool Leader::is_there() const {
  const std::lock_guard lock(mutex_);
  return bool(leader_);
}

// What is asked is kept as it is told: whoever comes to lead meanwhile hears of it either way.

void Leader::stop_now() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  if (leader_) actors::rt::post(leader_, actors::StopNow{});
}

void Leader::pause(bool paused) {
  const std::lock_guard lock(mutex_);
  is_paused_ = paused;
  if (!leader_) return;
  paused ? actors::rt::post(leader_, actors::Pause{}) : actors::rt::post(leader_, actors::Resume{});
}

bool Leader::is_paused() const {
  const std::lock_guard lock(mutex_);
  return is_paused_;
}

void Leader::hold(actors::Interlude interlude) {
  std::string state;
  {
    const std::lock_guard lock(mutex_);
    if (leader_) return actors::rt::post(leader_, std::move(interlude));
    if (ended_.empty()) return early_.push_back(std::move(interlude));
    state = ended_;
  }
  interlude.done(Error{"the run '" + run_ + "' is not active: it is " + state});
}

}  // namespace troupe::apps
