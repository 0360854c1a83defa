#include "simulation/machine/systems.h"

#include <utility>

namespace troupe::simulation {

class SimulatedSystems::Made final : public actors::caf_shim::System {
 public:
  explicit Made(SimulatedSystems& all)
      : all_(all), number_(all.made_++), actors_(all.scheduler_, all.process_) {
    all_.systems_.emplace(number_, &actors_);
  }
  ~Made() override { all_.systems_.erase(number_); }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;

  caf::actor_system& caf() override { return actors_.caf(); }

 private:
  SimulatedSystems& all_;
  std::size_t number_;
  CafScheduler actors_;
};

std::unique_ptr<actors::caf_shim::System> SimulatedSystems::make() {
  return std::make_unique<Made>(*this);
}

void SimulatedSystems::kill_all() {
  // The states of actors may own systems, which go with them.
  std::size_t next = 0;
  for (auto at = systems_.begin(); at != systems_.end(); at = systems_.lower_bound(next)) {
    next = at->first + 1;
    at->second->kill_all();
  }
}

}  // namespace troupe::simulation
