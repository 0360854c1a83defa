#pragma once

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/caf_shim.h"
#include "simulation/machine/scheduler.h"

namespace troupe::simulation {

/// The actor system of a simulated process. It has no threads: each actor with mail is a thing that
/// is ready, and running it delivers one message. Its clock has the time of the scheduler. Actors
/// must not be detached.
///
/// To destroy a process that was killed, its owner calls kill_all(), destroys the objects that have
/// actors, and then this object.
class CafScheduler final : public Source {
 public:
  CafScheduler(Scheduler& scheduler, ProcessId process);
  CafScheduler(const CafScheduler&) = delete;
  CafScheduler& operator=(const CafScheduler&) = delete;
  /// Kills all actors that are left.
  ~CafScheduler() override;

  actors::caf_shim::System& system() { return system_; }
  caf::actor_system& caf() { return system_.caf(); }

  /// Ends all actors, destroys their states and their mail, and cancels all timeouts. Runs no
  /// message. Actors must not run now.
  void kill_all();

  /// The actor is not ready until it is thawed: it hangs.
  void freeze(const caf::actor& actor) { frozen_.insert(actor.id()); }
  void thaw(const caf::actor& actor) { frozen_.erase(actor.id()); }

  struct Living {
    std::string name;
    caf::actor actor;
  };
  /// Returns the actors that have run and not ended, in the order in which they were spawned.
  std::vector<Living> living() const;

  std::size_t ready() override;
  void run(std::size_t which) override;
  std::uint64_t identity(std::size_t which) override;
  /// Returns the name of an actor's class, such as "supervisor".
  std::string name(std::size_t which) const override;
  void stall(std::uint64_t identity, std::chrono::nanoseconds time) override;
  std::optional<Time> next_timeout() override;
  void advance(Time now) override;

 private:
  class TestingSystem final : public actors::caf_shim::System {
   public:
    TestingSystem();
    caf::actor_system& caf() override { return system_; }

   private:
    caf::actor_system_config config_;
    caf::actor_system system_;
  };

  bool is_held(caf::resumable& job) const;
  std::size_t place(std::size_t which) const;
  void note(caf::resumable& job);
  bool end_actors();

  Scheduler& scheduler_;
  TestingSystem system_;
  caf::scheduler::test_coordinator& coordinator_;
  std::map<caf::actor_id, caf::weak_actor_ptr> actors_;  // The actors that have run.
  std::size_t actors_to_clean_ = 64;  // With so many actors, those that were freed are removed.
  std::set<caf::actor_id> frozen_;
  std::map<caf::actor_id, Time> stalled_;  // Until when.
  bool is_running_ = false;
  SourceId source_{};
};

}  // namespace troupe::simulation
