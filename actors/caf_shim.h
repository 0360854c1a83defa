#pragma once

#include <caf/all.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/deferred_sends.h"

/// The calls of CAF whose spelling changes in its next versions, in one place.
namespace troupe::actors::caf_shim {

using Duration = std::chrono::nanoseconds;
using TimePoint = caf::actor_clock::time_point;

/// Actors that end together, such as those of one attempt. Thread-safe.
class ActorGroup {
 public:
  using Task = std::function<void()>;

  ActorGroup() = default;
  ActorGroup(const ActorGroup&) = delete;
  ActorGroup& operator=(const ActorGroup&) = delete;

  /// Kills all actors of the group, and those that enter it later: an actor may spawn others before
  /// it ends.
  void kill_all();
  /// Calls `then` once, when no actor of the group is left: each has freed its state and the last
  /// message that it handled. Calls it at once if none is left, else on the thread of the last
  /// actor, which `then` must not block. Replaces an earlier `then`.
  void when_empty(Task then);

 private:
  friend class Base;
  void enter(caf::weak_actor_ptr actor);
  void leave(caf::actor_id actor);

  std::mutex mutex_;
  std::map<caf::actor_id, caf::weak_actor_ptr> actors_;
  bool kills_ = false;
  Task then_;
};

/// The actor system of a process, or of one of its runs. Main functions hand down what makes the
/// real one, and a simulator makes another whose actors it runs itself.
class System {
 public:
  System() = default;
  virtual ~System() = default;
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  virtual caf::actor_system& caf() = 0;
  /// Kills all actors of the system, and those that they spawn meanwhile. Calls `then` once none is
  /// left (ActorGroup::when_empty).
  void end_all(ActorGroup::Task then);

 private:
  friend struct Spawner;
  const std::shared_ptr<ActorGroup> all_ = std::make_shared<ActorGroup>();
};

/// Makes actor systems. Any thread may call it. It outlives the systems.
class Systems {
 public:
  virtual ~Systems() = default;
  virtual std::unique_ptr<System> make() = 0;
};

/// The actor system and the group in which actors are spawned. An actor spawns others in its own
/// system and group.
struct Spawner {
  Spawner(caf::actor_system& system) : system(&system) {}
  Spawner(System& system, std::shared_ptr<ActorGroup> group)
      : system(&system.caf()), group(std::move(group)), all(system.all_) {}

  caf::actor_system* system;
  std::shared_ptr<ActorGroup> group;  // May be null.
  std::shared_ptr<ActorGroup> all;    // All actors of the system; may be null.
};

/// The base class of all actors. An exception in a handler, or an unknown message, ends the actor
/// with its text as the reason: either is a bug of Troupe.
class Base : public caf::event_based_actor {
 public:
  using DownHandler = std::function<void(const caf::actor_addr&, const caf::error&)>;

  Base(caf::actor_config& config, Spawner spawner);
  ~Base() override { leave_groups(); }

  /// Leaves its groups after the end, once CAF has freed the last message.
  resume_result resume(caf::execution_unit* unit, std::size_t most) override;
  /// Returns where this actor was spawned.
  const Spawner& spawner() const { return spawner_; }

  /// Sets the handler for the end of watched actors, whose memory is freed before.
  void on_down(DownHandler handler) { down_ = std::move(handler); }
  void watch(const caf::actor& other) { monitor(other); }
  /// Ends when the other actor has ended. For actors that watch no other actor.
  void end_with(const caf::actor& other);
  template <class Message>
  void tell(const caf::actor& to, Message message) {
    send(to, std::move(message));
  }
  template <class Message>
  void tell_self_after(Duration time, Message message) {
    delayed_send(this, time, std::move(message));
  }

  /// Ends with a readable reason.
  void fail(const std::string& reason);
  /// Ends because a process was lost; is_lost() tells this reason from others.
  void end_lost(const std::string& reason);

  /// Returns the time of the actor system's clock, which a test may own.
  TimePoint now() { return home_system().clock().now(); }

 private:
  void leave_groups();

  Spawner spawner_;
  DownHandler down_;
};

/// Returns whether an actor ended because a process was lost.
bool is_lost(const caf::error& reason);

/// An actor whose state is destroyed when it ends. `State` has a static `name`, a constructor that
/// takes a Base* and the arguments of spawn(), and make_behavior().
template <class State>
class Actor final : public Base {
 public:
  template <class... Arguments>
  explicit Actor(caf::actor_config& config, const Spawner& spawner, Arguments&&... arguments)
      : Base(config, spawner) {
    state_.emplace(this, std::forward<Arguments>(arguments)...);
  }
  caf::behavior make_behavior() override { return state_->make_behavior(); }
  void on_exit() override { state_.reset(); }
  const char* name() const override { return State::name; }

 private:
  std::optional<State> state_;
};

template <class State, class... Arguments>
caf::actor spawn(const Spawner& spawner, Arguments&&... arguments) {
  return spawner.system->spawn<Actor<State>>(spawner, std::forward<Arguments>(arguments)...);
}

/// Sends a message, from any thread. A job's message is withheld until its device is done.
template <class Message>
void post(const caf::actor& to, Message message) {
  if (auto* deferred_sends = DeferredSends::of_this_thread())
    return deferred_sends->add(
        DeferredSends::Saying([to, held = std::make_shared<Message>(std::move(message))] {
          caf::anon_send(to, std::move(*held));
        }));
  caf::anon_send(to, std::move(message));
}
/// Sends a job's message at once, with the device mark in `after` that its receiver must follow.
template <class Message>
void hand_over(const caf::actor& to, Message message) {
  auto* deferred_sends = DeferredSends::of_this_thread();
  if (!deferred_sends) return caf::anon_send(to, std::move(message));
  deferred_sends->add(DeferredSends::Handing(
      [to, held = std::make_shared<Message>(std::move(message))](const DeviceMark& after) {
        held->after = after;
        caf::anon_send(to, std::move(*held));
      }));
}
/// Sends a message to an actor that may have ended.
template <class Message>
void post(const caf::weak_actor_ptr& to, Message message) {
  if (auto strong = caf::actor_cast<caf::actor>(to)) post(strong, std::move(message));
}

inline void stop(const caf::actor& actor) {
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}
inline void kill(const caf::actor& actor) { caf::anon_send_exit(actor, caf::exit_reason::kill); }

caf::weak_actor_ptr weak(const caf::actor& actor);
/// For use within the actor itself.
inline caf::weak_actor_ptr weak(Base& self) { return caf::weak_actor_ptr(self.ctrl()); }

/// Returns whether an actor gave a reason for its end. Else it was killed, stopped, or just ended.
bool is_told(const caf::error& reason);
/// Returns a readable reason why an actor ended.
std::string to_text(const caf::error& reason);

/// A thread pool with this many threads, which sleep when idle.
class Config : public caf::actor_system_config {
 public:
  explicit Config(std::size_t threads);
};

/// An actor system with threads. Actors never compute, so two are enough for their messages.
class RealSystem final : public System {
 public:
  explicit RealSystem(std::size_t threads = 2) : config_(threads), system_(config_) {}

  caf::actor_system& caf() override { return system_; }

 private:
  Config config_;
  caf::actor_system
      system_;  // Its destructor waits for its actors: whoever spawned them ends them.
};

class RealSystems final : public Systems {
 public:
  std::unique_ptr<System> make() override { return std::make_unique<RealSystem>(); }
};

}  // namespace troupe::actors::caf_shim
