#include "actors/nodes/traffic.h"

#include <algorithm>
#include <set>

#include "actors/exchange.h"
#include "actors/play/gradient_sum.h"
#include "actors/round.h"
#include "models/train/shared_parameters.h"

namespace troupe::actors {
namespace {

class Routes {
 public:
  explicit Routes(const RunSpec& spec) : spec_(spec), usual_(spec.round(0, 1)) {}

  /// Adds activations, gradients, and borrowed parameters.
  void add_passes(const Round& round) {
    const auto shared = models::shared_parameters(*spec_.model, spec_.stages);
    for (int replica = 0; replica < round.replicas; ++replica)
      for (const auto& route : round.schedule.routes) {
        const auto at = [&](int stage) {
          return number({replica, route[static_cast<std::size_t>(stage)], {}});
        };
        for (int stage = 0; stage + 1 < round.schedule.stages; ++stage) {
          add(at(stage), at(stage + 1));
          add(at(stage + 1), at(stage));
        }
        for (const auto& parameter : shared)
          for (const int user : parameter.stages) add(at(parameter.stages[0]), at(user));
      }
  }

  /// Adds gradients to each optimizer, and weights from it.
  void add_steps() {
    for (int optimizer = 0; optimizer < optimizers_of(spec_); ++optimizer) {
      const int home = number(home_of(spec_, optimizer));
      for (const auto& giving : given_to(spec_, optimizer))
        for (const auto& holder : holders_of(*usual_, giving.stage)) add(number(holder), home);
      for (const auto& holder : holders_of(*usual_, place_of(spec_, optimizer).stage))
        add(home, number(holder));
    }
  }

  /// Returns the devices that could sum the gradients of a stage.
  std::vector<int> sum_of(int stage) const {
    std::vector<int> devices;
    const auto& sections = spec_.sections[static_cast<std::size_t>(stage)];
    if (std::ranges::all_of(sections, [](const auto& section) { return section.pieces.empty(); }))
      return devices;
    for (const auto& holder : holders_of(*usual_, stage)) devices.push_back(number(holder));
    if (devices.size() < 2) devices.clear();
    return devices;
  }

  int number(const Holder& holder) const {
    return holder.replica * usual_->devices() + holder.device;
  }
  const Round& usual() const { return *usual_; }
  std::vector<std::pair<int, int>> all() const { return {routes_.begin(), routes_.end()}; }

 private:
  void add(int from, int to) {
    if (from != to) routes_.emplace(from, to);
  }

  const RunSpec& spec_;
  RoundPtr usual_;
  std::set<std::pair<int, int>> routes_;
};

}  // namespace

int Traffic::device_of(PlayerId player) const {
  if (player.kind == PlayerId::Kind::stage) return player.index;
  if (player.kind != PlayerId::Kind::optimizer) return -1;
  return optimizers[static_cast<std::size_t>(player.index)];
}

Traffic traffic_of(const RunSpec& spec, const Placement& placement) {
  Routes routes(spec);
  routes.add_passes(routes.usual());
  routes.add_passes(*spec.evaluation);
  routes.add_steps();
  Traffic traffic{placement.stages, {}, routes.all(), {}};
  for (int optimizer = 0; optimizer < optimizers_of(spec); ++optimizer)
    traffic.optimizers.push_back(routes.number(home_of(spec, optimizer)));
  for (int stage = 0; stage < static_cast<int>(spec.stages.size()) && may_add_up_anyhow(spec);
       ++stage)
    traffic.sums.push_back(routes.sum_of(stage));
  return traffic;
}

}  // namespace troupe::actors
