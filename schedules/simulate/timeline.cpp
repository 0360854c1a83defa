#include "schedules/simulate/timeline.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace troupe::schedules {
namespace {

constexpr auto none = std::numeric_limits<std::size_t>::max();

class TimelineBuilder {
 public:
  TimelineBuilder(const Schedule& schedule, const Costs& costs, const Simulation& simulation)
      : schedule_(schedule),
        costs_(costs),
        simulation_(simulation),
        width_(static_cast<std::size_t>(schedule.micro_batches)),
        forward_(static_cast<std::size_t>(schedule.stages) * width_, none),
        backward_(forward_) {
    timeline_.name = schedule.name;
    timeline_.devices = schedule.devices();
  }

  Timeline build() && {
    for (int device = 0; device < schedule_.devices(); ++device) {
      add_lane(device);
      add_levels(device);
    }
    const auto computed = timeline_.spans.size();
    for (std::size_t span = 0; span < computed; ++span) add_message(span);
    return std::move(timeline_);
  }

 private:
  void add_lane(int device) {
    const auto& lane = schedule_.lanes[static_cast<std::size_t>(device)];
    const auto& times = simulation_.lanes[static_cast<std::size_t>(device)];
    for (std::size_t position = 0; position < lane.size(); ++position) {
      const auto action = lane[position];
      const auto pass = action.stage * width_ + action.micro_batch;
      if (action.kind == Kind::forward) forward_[pass] = timeline_.spans.size();
      if (gives_input_gradient(action.kind)) backward_[pass] = timeline_.spans.size();
      const auto track = action.kind == Kind::give ? Track::reduce : Track::compute;
      timeline_.spans.push_back(
          {device, track, action, times[position].start, times[position].end});
    }
  }

  /// Adds the levels of a device. All actions of a group allocate before any frees.
  void add_levels(int device) {
    const auto& lane = schedule_.lanes[static_cast<std::size_t>(device)];
    const auto& times = simulation_.lanes[static_cast<std::size_t>(device)];
    double held = 0, given = 0, highest = 0;
    const auto add = [&](double time, double change) {
      if (change == 0) return;
      held += change;
      highest = std::max(highest, held);
      // A tiny remainder is a rounding error, so the level becomes 0.
      if (held < 1e-9 * highest) held = 0;
      timeline_.levels.push_back({device, time, held});
    };
    for (std::size_t position = 0; position < lane.size(); ++position) {
      const auto stash = stash_of(lane[position], costs_.stages[lane[position].stage]);
      add(times[position].start, stash.taken);
      given += stash.given;
      if (grouped_with_next(lane, position)) continue;
      add(times[position].end, -given);
      given = 0;
    }
  }

  /// Adds the message that a span's action received from another device, if any.
  void add_message(std::size_t to) {
    const auto receiver = timeline_.spans[to];
    const auto action = receiver.action;
    const auto pass = action.stage * width_ + action.micro_batch;
    std::size_t from = none;
    if (action.kind == Kind::forward && action.stage > 0) from = forward_[pass - width_];
    if (gives_input_gradient(action.kind) && action.stage + 1 < schedule_.stages)
      from = backward_[pass + width_];
    if (from == none) return;
    const auto sender = timeline_.spans[from];
    if (sender.device == receiver.device) return;
    timeline_.messages.push_back({from, to});

    const auto& before = costs_.stages[std::min(action.stage, sender.action.stage)];
    const double size = action.kind == Kind::forward ? before.boundary : before.boundary_back;
    const double travel = costs_.travel(static_cast<std::size_t>(sender.device),
                                        static_cast<std::size_t>(receiver.device), size);
    const double sent = std::max(sender.end, slot_granted(action, receiver.end));
    if (travel == 0) return;
    timeline_.spans.push_back({sender.device, Track::send, sender.action, sent, sent + travel});
    timeline_.spans.push_back(
        {receiver.device, Track::receive, sender.action, sent, sent + travel});
  }

  /// Returns when the slot's previous message was used, and records that this one is used at `end`.
  double slot_granted(Action action, double end) {
    const auto slots = static_cast<std::size_t>(costs_.landing_slots);
    const std::size_t route = schedule_.route_of[action.micro_batch % schedule_.route_of.size()];
    auto& used = used_[{route, action.stage, action.kind == Kind::forward}];
    used.push_back(end);
    return slots > 0 && used.size() > slots ? used[used.size() - 1 - slots] : 0;
  }

  const Schedule& schedule_;
  const Costs& costs_;
  const Simulation& simulation_;
  std::size_t width_;
  std::vector<std::size_t> forward_;  // The span, by stage and micro-batch.
  std::vector<std::size_t> backward_;
  /// The times at which messages were used, keyed by route, stage and direction.
  std::map<std::tuple<std::size_t, std::uint16_t, bool>, std::vector<double>> used_;
  Timeline timeline_;
};

}  // namespace

Timeline timeline_of(const Schedule& schedule, const Costs& costs, const Simulation& simulation) {
  return TimelineBuilder(schedule, costs, simulation).build();
}

}  // namespace troupe::schedules
