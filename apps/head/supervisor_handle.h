#pragma once

#include <caf/all.hpp>
#include <mutex>
#include <string>
#include <vector>

#include "actors/messages.h"

namespace troupe::apps {

/// A handle of a run's supervisor. Requests made before the supervisor exists are stored and sent
/// to it once it does. Any thread.
class SupervisorHandle {
 public:
  explicit SupervisorHandle(std::string run) : run_(std::move(run)) {}

  /// Sets the supervisor; a null actor means that there is none now.
  void change(const caf::actor& supervisor);
  /// Marks the run as ended in this state: there will be no further supervisor.
  void leave(const std::string& state);
  bool is_there() const;

  /// Cannot be undone.
  void stop_now();
  void pause(bool paused);
  bool is_paused() const;
  /// Requests a boundary change. It is always answered, at once if the run has ended.
  void hold(actors::BoundaryChange boundary_change);

 private:
  const std::string run_;
  mutable std::mutex mutex_;
  caf::actor supervisor_;
  std::string ended_;  // The final state; empty while a supervisor may still come.
  bool is_paused_ = false;
  bool is_stopped_ = false;
  // Boundary changes that were requested before there was a supervisor.
  std::vector<actors::BoundaryChange> early_;
};

}  // namespace troupe::apps
