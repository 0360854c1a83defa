#include "actors/envoy.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <tuple>
#include <utility>

#include "actors/job.h"
#include "actors/rt.h"

namespace troupe::actors {
namespace {

constexpr auto loss = caf::sec::cannot_connect_to_node;

class Envoy {
 public:
  static constexpr const char* name = "envoy";

  Envoy(rt::Base* self, PlayerId player, Carry carry, MemoryPool* memory,
        std::vector<Executor*> executors)
      : self_(self),
        player_(player),
        carry_(std::move(carry)),
        memory_(memory),
        executors_(std::move(executors)) {}

  caf::behavior make_behavior() { return behavior(static_cast<Travelling*>(nullptr)); }

 private:
  template <class... Message>
  caf::behavior behavior(std::tuple<Message...>*) {
    return {
        [this](const Meet& meet) { self_->end_with(meet.cast->supervisor); },
        [this](const PlayerEnded& ended) {
          if (ended.cause == Cause::failed) return self_->fail(ended.why);
          self_->quit(caf::make_error(loss, ended.why));
        },
        [this](TensorsBrought& brought) {
          waiting_.front().tensors = std::move(brought.tensors);
          send();
        },
        [this](const JobFailed& failed) { self_->fail(failed.text); },
        [this](const Message& message) {
          waiting_.push_back(to_dispatch(message, *memory_));
          if (waiting_.size() == 1) send();
        }...,
    };
  }

  /// One after another, in the order in which they came.
  void send() {
    for (; !waiting_.empty(); waiting_.pop_front()) {
      auto& next = waiting_.front();
      const auto afar = std::ranges::find_if(
          next.tensors, [](const Tensor& tensor) { return !tensor.place().is_host(); });
      if (afar != next.tensors.end()) return bring(afar->place(), next);
      if (auto sent = carry_(player_, std::move(next)); !sent)
        return self_->fail(sent.error().text);
    }
  }

  /// What lies on a device, its own executor brings to the host: no other thread speaks to it.
  void bring(MemoryPlace from, const Dispatch& dispatch) {
    const auto executor =
        std::ranges::find(executors_, from, [](Executor* one) { return one->memory().place(); });
    assert(executor != executors_.end() && "a tensor of a device that is not here");
    Jobs(**executor, rt::weak(*self_))
        .post(dispatch.type,
              [tensors = dispatch.tensors, from, owner = rt::weak(*self_)](Stream& stream) mutable {
                for (auto& tensor : tensors)
                  if (tensor.place() == from) tensor = stream.to_host(std::move(tensor));
                rt::post(owner, TensorsBrought{std::move(tensors)});
              });
  }

  rt::Base* self_;
  PlayerId player_;
  Carry carry_;
  MemoryPool* memory_;
  std::vector<Executor*> executors_;
  std::deque<Dispatch> waiting_;  // The first one is being brought.
};

}  // namespace

bool is_lost(const caf::error& reason) { return reason == loss; }

caf::actor spawn_envoy(caf::actor_system& system, PlayerId player, Carry carry, MemoryPool& memory,
                       std::vector<Executor*> executors) {
  std::erase(executors, nullptr);
  return rt::spawn<Envoy>(system, player, std::move(carry), &memory, std::move(executors));
}

}  // namespace troupe::actors
