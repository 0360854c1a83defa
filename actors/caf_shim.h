#pragma once

#include <caf/all.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/deferred_sends.h"

/// The calls of CAF whose spelling changes in its next versions, in one place.
namespace troupe::actors::caf_shim {

using Duration = std::chrono::nanoseconds;
using TimePoint = caf::actor_clock::time_point;

/// The base class of all actors. An exception in a handler, or an unknown message, ends the actor
/// with its text as the reason: either is a bug of Troupe.
class Base : public caf::event_based_actor {
 public:
  using DownHandler = std::function<void(const caf::actor_addr&, const caf::error&)>;

  explicit Base(caf::actor_config& config);

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
  explicit Actor(caf::actor_config& config, Arguments&&... arguments) : Base(config) {
    state_.emplace(this, std::forward<Arguments>(arguments)...);
  }
  caf::behavior make_behavior() override { return state_->make_behavior(); }
  void on_exit() override { state_.reset(); }
  const char* name() const override { return State::name; }

 private:
  std::optional<State> state_;
};

template <class State, class... Arguments>
caf::actor spawn(caf::actor_system& system, Arguments&&... arguments) {
  return system.spawn<Actor<State>>(std::forward<Arguments>(arguments)...);
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

}  // namespace troupe::actors::caf_shim
