#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "actors/round.h"

namespace troupe::actors {
namespace {

using schedules::Action;
using schedules::Kind;

/// Simulates how far a replica's devices get while one of them stands still. Other replicas,
/// loaders and optimizers are assumed never to be late.
class Walk {
 public:
  Walk(std::span<const RoundPtr> rounds, std::span<const models::SharedParameter> shared,
       int device)
      : rounds_(rounds),
        shared_(shared),
        device_(device),
        places_(rounds[0]->schedule.lanes.size()) {
    for (int stage = 0; stage < rounds[0]->schedule.stages; ++stage) {
      auto& devices = holders_.emplace_back();
      for (const auto& holder : holders_of(*rounds[0], stage))
        if (holder.replica == 0) devices.push_back(holder.device);
    }
  }

  /// Advances all other devices as far as possible. Returns the parcels in the device's inbox.
  int advance_others() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int device = 0; device < static_cast<int>(places_.size()); ++device)
        while (device != device_ && step(device)) moved = true;
    }
    return parcels_;
  }
  /// Plays one action of the device. Returns false at the start of the last round.
  bool advance() { return places_[index(device_)].round + 1 < rounds_.size() && step(device_); }

 private:
  struct Place {
    std::size_t round = 0;
    std::size_t action = 0;
  };
  enum class Made : std::uint8_t { output, gradient };
  using Counts = std::map<std::pair<int, int>, int>;  // Keyed by device and stage.

  static int count(const Counts& counts, int device, int stage) {
    const auto found = counts.find({device, stage});
    return found == counts.end() ? 0 : found->second;
  }

  static std::size_t index(int n) { return static_cast<std::size_t>(n); }

  bool step(int device) {
    auto& place = places_[index(device)];
    while (place.round < rounds_.size() &&
           place.action == rounds_[place.round]->schedule.lanes[index(device)].size())
      place = {place.round + 1, 0};
    if (place.round == rounds_.size()) return false;
    const Action action = rounds_[place.round]->schedule.lanes[index(device)][place.action];
    if (!ready(place.round, device, action)) return false;
    play(place.round, device, action);
    ++place.action;
    return true;
  }

  bool ready(std::size_t round, int device, Action action) const {
    const int stage = action.stage;
    switch (action.kind) {
      case Kind::forward:
        return (stage == 0 || has(Made::output, round, stage - 1, action)) &&
               std::ranges::all_of(shared_, [&](const auto& parameter) {
                 return !borrows(parameter, stage) ||
                        has(Made::output, round, parameter.stages[0], action);
               });
      case Kind::backward:
      case Kind::backward_input:
        return stage + 1 == rounds_[round]->schedule.stages ||
               has(Made::gradient, round, stage + 1, action);
      case Kind::update: {
        return std::ranges::all_of(holders_[index(stage)], [&](int holder) {
          return count(given_, holder, stage) > count(taken_, device, stage);
        });
      }
      case Kind::recompute:
      case Kind::backward_weight:
      case Kind::give:
      case Kind::gather:
      case Kind::release:
        return true;
    }
    return true;
  }

  void play(std::size_t round, int device, Action action) {
    const auto& schedule = rounds_[round]->schedule;
    const auto& route = schedule.route(action.micro_batch);
    const int stage = action.stage;
    const auto sent_to = [&](int other) { parcels_ += route[index(other)] == device_ ? 1 : 0; };
    const auto used = [&] { parcels_ -= device == device_ ? 1 : 0; };
    switch (action.kind) {
      case Kind::forward:
        made_.insert({Made::output, round, stage, action.micro_batch});
        if (stage > 0) used();
        if (stage + 1 < schedule.stages) sent_to(stage + 1);
        for (const auto& parameter : shared_) {
          if (borrows(parameter, stage)) used();
          if (parameter.stages[0] != stage) continue;
          for (const int user : parameter.stages)
            if (user != stage) sent_to(user);
        }
        return;
      case Kind::backward:
      case Kind::backward_input:
        made_.insert({Made::gradient, round, stage, action.micro_batch});
        if (stage + 1 < schedule.stages) used();
        if (stage > 0) sent_to(stage - 1);
        return;
      case Kind::give:
        ++given_[{device, stage}];
        return;
      case Kind::update:
        ++taken_[{device, stage}];
        return;
      case Kind::recompute:
      case Kind::backward_weight:
      case Kind::gather:
      case Kind::release:
        return;
    }
  }

  bool has(Made what, std::size_t round, int stage, Action action) const {
    return made_.contains({what, round, stage, action.micro_batch});
  }

  std::span<const RoundPtr> rounds_;
  std::span<const models::SharedParameter> shared_;
  int device_;
  std::vector<Place> places_;              // Indexed by device.
  std::vector<std::vector<int>> holders_;  // Devices that give gradients, by stage.
  std::set<std::tuple<Made, std::size_t, int, std::uint32_t>> made_;
  Counts given_;
  Counts taken_;
  int parcels_ = 0;
};

}  // namespace

std::vector<std::size_t> most_parcels(std::span<const RoundPtr> rounds, int loader_credit,
                                      std::span<const models::SharedParameter> shared) {
  std::vector<std::size_t> most;
  const auto& first = rounds[0]->schedule;
  for (int device = 0; device < first.devices(); ++device) {
    const auto holds = [&](int stage) {
      return std::ranges::any_of(first.lanes[static_cast<std::size_t>(device)], [&](Action action) {
        return action.kind == Kind::forward && action.stage == stage;
      });
    };
    const int loaders = (holds(0) ? 1 : 0) + (holds(first.stages - 1) ? 1 : 0);
    Walk walk(rounds, shared, device);
    int most_here = walk.advance_others();
    while (walk.advance()) most_here = std::max(most_here, walk.advance_others());
    most.push_back(static_cast<std::size_t>(most_here + loaders * loader_credit));
  }
  return most;
}

}  // namespace troupe::actors
