#pragma once

#include <caf/all.hpp>
#include <mutex>
#include <string>
#include <vector>

#include "actors/messages.h"

namespace troupe::apps {

/// Who leads a run, for those who ask something of it: what is asked before there is somebody is
/// kept, and told whoever comes. Any thread.
class SupervisorHandle {
 public:
  explicit SupervisorHandle(std::string run) : run_(std::move(run)) {}

  /// This one leads from now on; none: nobody does.
  void change(const caf::actor& supervisor);
  /// Nobody will any more; the run is in this state.
  void leave(const std::string& state);
  bool is_there() const;

  /// For good.
  void stop_now();
  void pause(bool paused);
  bool is_paused() const;
  /// It is answered in any case, soon where the run has ended.
  void hold(actors::BoundaryChange boundary_change);

 private:
  const std::string run_;
  mutable std::mutex mutex_;
  caf::actor supervisor_;
  std::string ended_;  // In which state; empty while somebody may lead it yet.
  bool is_paused_ = false;
  bool is_stopped_ = false;
  std::vector<actors::BoundaryChange> early_;  // Asked for before there was somebody to tell.
};

}  // namespace troupe::apps
