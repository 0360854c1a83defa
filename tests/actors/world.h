#pragma once

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "actors/executor.h"
#include "actors/rt.h"

namespace troupe::actors {

/// Real actors in one thread, on a clock that the test owns. Which of the actors that have mail
/// runs next is drawn by the seed: equal seeds give equal runs.
class World {
 public:
  explicit World(std::uint64_t seed);
  ~World();

  caf::actor_system& system() { return system_; }

  /// One message of one actor; false where nobody has mail.
  bool step();
  /// Until nobody has mail.
  void settle();
  /// Until `done`, or until so much time has passed on the test's clock. Time passes only where
  /// nobody has mail.
  bool run_until(const std::function<bool()>& done, rt::Duration patience);

  /// An executor whose jobs are run by an actor, so that they too come in an order drawn by the
  /// seed.
  Executor& make_executor();

  std::uint64_t steps() const { return steps_; }
  std::mt19937_64& random() { return random_; }

 private:
  struct Config : caf::actor_system_config {
    Config() { set("scheduler.policy", caf::atom("testing")); }
  };

  Config config_;
  std::vector<std::unique_ptr<Executor>> executors_;  // Outlive the actors: jobs hold tensors.
  caf::actor_system system_;
  caf::scheduler::test_coordinator& scheduler_;
  std::mt19937_64 random_;
  std::uint64_t steps_ = 0;
};

}  // namespace troupe::actors
