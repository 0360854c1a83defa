#include "actors/envoy.h"

#include <tuple>
#include <utility>

#include "actors/rt.h"

namespace troupe::actors {
namespace {

constexpr auto loss = caf::sec::cannot_connect_to_node;

class Envoy {
 public:
  static constexpr const char* name = "envoy";

  Envoy(rt::Base* self, PlayerId player, Carry carry, MemoryPool* memory)
      : self_(self), player_(player), carry_(std::move(carry)), memory_(memory) {}

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
        [this](const Message& message) { send(to_dispatch(message, *memory_)); }...,
    };
  }

  void send(Dispatch dispatch) {
    if (auto sent = carry_(player_, std::move(dispatch)); !sent) self_->fail(sent.error().text);
  }

  rt::Base* self_;
  PlayerId player_;
  Carry carry_;
  MemoryPool* memory_;
};

}  // namespace

bool is_lost(const caf::error& reason) { return reason == loss; }

caf::actor spawn_envoy(caf::actor_system& system, PlayerId player, Carry carry,
                       MemoryPool& memory) {
  return rt::spawn<Envoy>(system, player, std::move(carry), &memory);
}

}  // namespace troupe::actors
