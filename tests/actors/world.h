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
  bool run_until(const std::function<bool()>& done, caf_shim::Duration patience);

  /// An executor whose jobs are run by an actor, so that they too come in an order drawn by the
  /// seed.
  Executor& make_executor();
  /// Likewise, of a device, which it waits for after each job.
  Executor& make_executor(std::unique_ptr<Device> device, std::unique_ptr<MemorySource> memory);

  /// Who has had mail for the longest runs next: nothing is drawn any more.
  void play_in_order() { in_order_ = true; }

  /// From now on it gets no mail: it hangs.
  void freeze(const caf::actor& actor) { frozen_.insert(actor.id()); }
  void freeze(const Executor& executor);
  void thaw() { frozen_.clear(); }

  /// Actors that have not ended, with what State::name says; no executors.
  struct Living {
    std::string name;
    caf::actor actor;
  };
  std::vector<Living> living() const;
  /// The most jobs that ever waited in an executor.
  static std::size_t most_waiting(const Executor& executor);

  std::uint64_t steps() const { return steps_; }
  caf_shim::TimePoint now() const { return scheduler_.clock().now(); }
  std::mt19937_64& random() { return random_; }

 private:
  struct Config : caf::actor_system_config {
    Config() { set("scheduler.policy", caf::atom("testing")); }
  };

  void note(caf::resumable* job);
  /// A place in the queue of who has mail, drawn among those that are not frozen.
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
