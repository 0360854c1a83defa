#pragma once

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "actors/caf_shim.h"
#include "actors/executor.h"

namespace troupe::actors {

/// Real actors in one thread, on a clock that the test owns. The seed decides which actor with mail
/// runs next, so equal seeds give equal runs.
class World {
 public:
  explicit World(std::uint64_t seed);
  ~World();

  caf::actor_system& system() { return system_; }

  /// Delivers one message to one actor; returns false if nobody has mail.
  bool step();
  /// Runs until nobody has mail.
  void settle();
  /// Runs until `done`, or until `patience` has passed on the test's clock. Time passes only if
  /// nobody has mail.
  bool run_until(const std::function<bool()>& done, caf_shim::Duration patience);

  /// Returns an executor whose jobs an actor runs, so that their order depends on the seed too.
  Executor& make_executor();
  /// Returns an executor for a device. It waits for the device after each job.
  Executor& make_executor(std::unique_ptr<Device> device, std::unique_ptr<MemorySource> memory);

  /// From now on runs the actor whose mail waited longest; the seed has no more influence.
  void play_in_order() { in_order_ = true; }

  /// From now on the actor gets no mail: it hangs.
  void freeze(const caf::actor& actor) { frozen_.insert(actor.id()); }
  void freeze(const Executor& executor);
  void thaw() { frozen_.clear(); }

  /// The actors that have not ended, with their State::name; without executors.
  struct Living {
    std::string name;
    caf::actor actor;
  };
  std::vector<Living> living() const;
  /// Returns the most jobs that ever waited in an executor.
  static std::size_t most_waiting(const Executor& executor);

  std::uint64_t steps() const { return steps_; }
  caf_shim::TimePoint now() const { return scheduler_.clock().now(); }
  std::mt19937_64& random() { return random_; }

 private:
  struct Config : caf::actor_system_config {
    Config() { set("scheduler.policy", caf::atom("testing")); }
  };

  void note(caf::resumable* job);
  /// Returns a random place in the queue of actors with mail, skipping frozen ones.
  std::optional<std::size_t> draw();

  Config config_;
  std::vector<std::unique_ptr<Executor>> executors_;  // Outlive the actors: jobs hold tensors.
  caf::actor_system system_;
  caf::scheduler::test_coordinator& scheduler_;
  std::mt19937_64 random_;
  std::uint64_t steps_ = 0;
  std::map<caf::actor_id, caf::weak_actor_ptr> seen_;
  std::set<caf::actor_id> frozen_;
  bool in_order_ = false;
};

}  // namespace troupe::actors
