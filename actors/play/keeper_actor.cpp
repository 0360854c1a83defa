#include "actors/play/keeper_actor.h"

#include <utility>

#include "actors/caf_shim.h"
#include "actors/messages.h"

namespace troupe::actors {
namespace {

class Keeper {
 public:
  static constexpr const char* name = "keeper";

  Keeper(caf_shim::Base* self, std::shared_ptr<StateStore> state_store)
      : self_(self), state_store_(std::move(state_store)) {}

  caf::behavior make_behavior() {
    return {
        [this](Meet& meet) {
          players_ = std::move(meet.players);
          self_->end_with(players_->supervisor);
        },
        [this](StateCopy& copy) { put(std::move(copy)); },
    };
  }

 private:
  void put(StateCopy copy) {
    Kept kept{copy.state.attempt, copy.state.optimizer, copy.state.step, {}, false, {}};
    state_store_->put(std::move(copy),
                      [kept, to = caf_shim::weak(players_->supervisor)](auto copied) mutable {
                        if (copied)
                          kept.took = *copied;
                        else
                          kept.why_not = copied.error().text;
                        caf_shim::post(to, std::move(kept));
                      });
  }

  caf_shim::Base* self_;
  std::shared_ptr<StateStore> state_store_;
  PlayersPtr players_;
};

}  // namespace

caf::actor spawn_keeper(const caf_shim::Spawner& spawner, std::shared_ptr<StateStore> state_store) {
  return caf_shim::spawn<Keeper>(spawner, std::move(state_store));
}

}  // namespace troupe::actors
