#include "transport/control/loop_delivery.h"

#include <deque>
#include <mutex>
#include <utility>

#include "transport/control/delivery.h"

namespace troupe::transport {
namespace {

/// The most calls in one task, so that the loop's other tasks get their turn.
constexpr int most_in_task = 64;

}  // namespace

struct LoopDelivery::State {
  struct Call {
    std::size_t bytes = 0;
    Loop::Task run;
  };

  State(Loop& on, const LinkOptions& link, std::function<void()> wake)
      : loop(on), most(link.queue), most_bytes(link.queue_bytes), has_room(std::move(wake)) {}
  /// Requires the lock.
  bool is_full() const { return waiting.size() >= most || bytes >= most_bytes; }

  Loop& loop;
  const std::size_t most;
  const std::size_t most_bytes;
  const std::function<void()> has_room;
  std::mutex calling;  // Held during each call. Locked before `mutex`.
  std::mutex mutex;
  std::deque<Call> waiting;
  std::size_t bytes = 0;
  bool has_started = false;
  bool is_posted = false;  // A task waits or runs.
  bool is_stopped = false;
};

LoopDelivery::LoopDelivery(Loop& loop, const LinkOptions& link, std::function<void()> has_room)
    : state_(std::make_shared<State>(loop, link, std::move(has_room))) {}

void LoopDelivery::start() {
  const std::lock_guard lock(state_->mutex);
  state_->has_started = true;
  if (!state_->waiting.empty()) post(state_);
}

void LoopDelivery::add(std::size_t bytes, Loop::Task call) {
  const std::lock_guard lock(state_->mutex);
  if (state_->is_stopped) return;
  state_->waiting.push_back({bytes, std::move(call)});
  state_->bytes += bytes;
  if (state_->has_started) post(state_);
}

/// Posts a task, unless there is one. Requires the lock.
void LoopDelivery::post(const std::shared_ptr<State>& state) {
  if (std::exchange(state->is_posted, true)) return;
  if (state->loop.post([state] { run(state); }) == Loop::Posted::yes) return;
  // The loop has ended.
  state->is_stopped = true;
  state->waiting.clear();
  state->bytes = 0;
}

void LoopDelivery::run(const std::shared_ptr<State>& state) {
  for (int i = 0; i < most_in_task; ++i) {
    const std::lock_guard calling(state->calling);
    State::Call call;
    {
      const std::lock_guard lock(state->mutex);
      if (state->waiting.empty()) {
        state->is_posted = false;
        return;
      }
      const bool was_full = state->is_full();
      call = std::move(state->waiting.front());
      state->waiting.pop_front();
      state->bytes -= call.bytes;
      if (was_full && !state->is_full()) state->has_room();
    }
    call.run();
  }
  const std::lock_guard lock(state->mutex);
  state->is_posted = false;
  post(state);
}

bool LoopDelivery::is_full() const {
  const std::lock_guard lock(state_->mutex);
  return state_->is_full();
}

void LoopDelivery::stop() {
  std::deque<State::Call> dropped;
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_stopped = true;
    state_->bytes = 0;
    dropped.swap(state_->waiting);
  }
  const std::lock_guard calling(state_->calling);
}

ServerEvents delivered(const ServerEvents& events, LoopDelivery& delivery) {
  ServerEvents passing;
  passing.connected = [&](const Peer& peer) {
    if (events.connected) delivery.add(0, [&events, peer] { events.connected(peer); });
  };
  passing.message = [&](const Peer& peer, Message message) {
    if (!events.message) return;
    const auto bytes = bytes_of(message);
    delivery.add(bytes, [&events, peer, message = std::move(message)]() mutable {
      events.message(peer, std::move(message));
    });
  };
  passing.gone = [&](const Peer& peer, Gone gone, const std::string& why) {
    if (!events.gone) return;
    delivery.add(why.size(), [&events, peer, gone, why] { events.gone(peer, gone, why); });
  };
  passing.refused = [&](const std::string& address, const std::string& why) {
    if (!events.refused) return;
    delivery.add(why.size(), [&events, address, why] { events.refused(address, why); });
  };
  return passing;
}

ClientEvents delivered(const ClientEvents& events, LoopDelivery& delivery) {
  ClientEvents passing;
  passing.connected = [&] {
    if (events.connected) delivery.add(0, [&events] { events.connected(); });
  };
  passing.message = [&](Message message) {
    if (!events.message) return;
    const auto bytes = bytes_of(message);
    delivery.add(bytes, [&events, message = std::move(message)]() mutable {
      events.message(std::move(message));
    });
  };
  passing.gone = [&](Gone gone, const std::string& why) {
    if (events.gone) delivery.add(why.size(), [&events, gone, why] { events.gone(gone, why); });
  };
  passing.refused = [&](const std::string& why) {
    if (events.refused) delivery.add(why.size(), [&events, why] { events.refused(why); });
  };
  return passing;
}

}  // namespace troupe::transport
