#include "actors/nodes/proxy.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <tuple>
#include <utility>

#include "actors/caf_shim.h"
#include "actors/play/job.h"

namespace troupe::actors {
namespace {

class Proxy {
 public:
  static constexpr const char* name = "proxy";

  Proxy(caf_shim::Base* self, PlayerId player, Route route, MemoryPool* memory)
      : self_(self), player_(player), route_(std::move(route)), memory_(memory) {}

  caf::behavior make_behavior() { return behavior(static_cast<Travelling*>(nullptr)); }

 private:
  template <class... Message>
  caf::behavior behavior(std::tuple<Message...>*) {
    return {
        [this](const Meet& meet) { self_->end_with(meet.players->supervisor); },
        [this](const PlayerEnded& ended) {
          if (ended.cause == EndCause::failed) return self_->fail(ended.why);
          self_->end_lost(ended.why);
        },
        [this](TensorsBrought& brought) {
          waiting_.front().tensors = std::move(brought.tensors);
          send();
        },
        [this](const JobFailed& failed) { self_->fail(failed.text); },
        [this](const Message& message) {
          waiting_.push_back(to_wire_message(message, *memory_));
          if (waiting_.size() == 1) send();
        }...,
    };
  }

  /// Sends all waiting messages in the order in which they came.
  void send() {
    for (; !waiting_.empty(); waiting_.pop_front()) {
      auto& next = waiting_.front();
      const auto afar = std::ranges::find_if(
          next.tensors, [](const Tensor& tensor) { return !tensor.place().is_host(); });
      const bool is_linked = route_.is_linked && route_.is_linked(player_, next);
      if (afar != next.tensors.end() && !is_linked) return bring(afar->place(), next);
      if (auto sent = route_.carry(player_, std::move(next)); !sent)
        return self_->fail(sent.error().text);
    }
  }

  /// Copies tensors to the host by their device's own executor: no other thread may use the device.
  void bring(MemoryPlace from, const WireMessage& wire_message) {
    const auto executor = std::ranges::find_if(
        route_.executors, [&](Executor* one) { return one && one->memory().place() == from; });
    assert(executor != route_.executors.end() && "a tensor of a device that is not here");
    Jobs(**executor, caf_shim::weak(*self_))
        .post(wire_message.type, [tensors = wire_message.tensors, from,
                                  owner = caf_shim::weak(*self_)](Stream& stream) mutable {
          for (auto& tensor : tensors)
            if (tensor.place() == from) tensor = stream.to_host(std::move(tensor));
          caf_shim::post(owner, TensorsBrought{std::move(tensors)});
        });
  }

  caf_shim::Base* self_;
  PlayerId player_;
  Route route_;
  MemoryPool* memory_;
  std::deque<WireMessage> waiting_;  // The first one's tensors may be on their way to the host.
};

}  // namespace

caf::actor spawn_proxy(const caf_shim::Spawner& spawner, PlayerId player, Route route,
                       MemoryPool& memory) {
  return caf_shim::spawn<Proxy>(spawner, player, std::move(route), &memory);
}

}  // namespace troupe::actors
