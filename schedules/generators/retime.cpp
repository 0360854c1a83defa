#include "schedules/generators/retime.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <queue>

#include "schedules/check/leg.h"

namespace troupe::schedules {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
// Sums of stashes in different order may differ in the last bits.
constexpr double slack = 1e-9;

struct Listed {
  Action action;
  std::size_t position = 0;  // In the lane of the base.
};

/// The state of one device during the simulation.
struct Device {
  std::vector<Listed> forwards;
  std::vector<Listed> backwards;
  std::size_t next_forward = 0;
  std::size_t next_backward = 0;
  Waiting weights;
  double free_at = 0;
  double kept = 0;
  Lane played;

  const Listed* forward() const {
    return next_forward < forwards.size() ? &forwards[next_forward] : nullptr;
  }
  const Listed* backward() const {
    return next_backward < backwards.size() ? &backwards[next_backward] : nullptr;
  }
};

class Retiming {
 public:
  Retiming(const Schedule& base, const RetimeSettings& settings)
      : base_(base),
        settings_(settings),
        devices_(base.lanes.size()),
        forward_arrival_(cells(), never),
        backward_arrival_(cells(), never) {
    assert(settings.stages.size() == static_cast<std::size_t>(base.stages));
    assert(settings.caps.size() == base.lanes.size());
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      std::size_t position = 0;
      for (Action action : base.lanes[d]) {
        action.flags = 0;
        const Listed listed{action, position++};
        assert(action.kind <= Kind::backward_weight && "only passes can be re-timed");
        if (action.kind == Kind::forward) devices_[d].forwards.push_back(listed);
        if (gives_input_gradient(action.kind)) devices_[d].backwards.push_back(listed);
      }
      wake(d, 0);
    }
    for (int m = 0; m < base.micro_batches; ++m) forward_arrival_[cell(0, m)] = 0;
  }

  std::optional<Schedule> play() {
    while (!wakes_.empty()) {
      const auto [time, device] = wakes_.top();
      wakes_.pop();
      if (devices_[device].free_at <= time) decide(device, time);
    }
    Schedule schedule = base_;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      if (devices_[d].played.size() != base_.lanes[d].size()) return std::nullopt;
      schedule.lanes[d] = std::move(devices_[d].played);
    }
    return schedule;
  }

 private:
  struct Wake {
    double time;
    std::size_t device;
    bool operator>(const Wake& other) const {
      return time != other.time ? time > other.time : device > other.device;
    }
  };

  std::size_t cells() const { return std::size_t(base_.stages) * base_.micro_batches; }
  std::size_t cell(int stage, std::uint32_t m) const {
    return std::size_t(stage) * base_.micro_batches + m;
  }
  std::size_t cell(Action action) const { return cell(action.stage, action.micro_batch); }

  void wake(std::size_t device, double time) { wakes_.push({time, device}); }

  double forward_time(const Device& device, std::size_t d) const {
    const Listed* next = device.forward();
    if (!next) return never;
    const bool fits =
        device.kept + settings_.stages[next->action.stage].stash <= settings_.caps[d] + slack;
    return fits ? forward_arrival_[cell(next->action)] : never;
  }
  double backward_time(const Device& device) const {
    const Listed* next = device.backward();
    return next ? backward_arrival_[cell(next->action)] : never;
  }

  void decide(std::size_t d, double now) {
    Device& device = devices_[d];
    const double forward_at = forward_time(device, d);
    const double backward_at = backward_time(device);
    const bool forward_ready = forward_at <= now;
    const bool backward_ready = backward_at <= now;
    if (backward_ready && (!forward_ready || goes_backward(device))) {
      const Action action = device.backwards[device.next_backward++].action;
      start(d, now, action);
    } else if (forward_ready) {
      const Action action = device.forwards[device.next_forward++].action;
      start(d, now, action);
    } else if (!device.weights.empty()) {
      const double soon =
          now + settings_.patience * settings_.stages[device.weights.front().stage].weight;
      if (std::min(forward_at, backward_at) < soon) return;  // Its arrival wakes the device.
      const Action action = device.weights.front();
      device.weights.pop_front();
      start(d, now, action);
    }
  }

  bool goes_backward(const Device& device) const {
    switch (settings_.preference) {
      case Preference::backward_first:
        return true;
      case Preference::forward_first:
        return false;
      case Preference::as_listed:
        return device.backward()->position < device.forward()->position;
    }
    return true;
  }

  void start(std::size_t d, double now, Action action) {
    Device& device = devices_[d];
    const RetimeSettings::Stage& stage = settings_.stages[action.stage];
    device.played.push_back(action);
    if (action.kind == Kind::forward) {
      device.kept += stage.stash;
      end(d, now + stage.forward);
      pass_on_forward(action, device.free_at);
    } else if (action.kind == Kind::backward_weight) {
      device.kept -= stage.stash;
      end(d, now + stage.weight);
    } else {
      const bool fused = action.kind == Kind::backward;
      if (fused)
        device.kept -= stage.stash;
      else
        device.weights.push_back(
            backward_weight(action.stage, static_cast<int>(action.micro_batch)));
      end(d, now + (fused ? stage.backward : stage.input));
      if (action.stage > 0)
        arrive(backward_arrival_, d, action.stage - 1, action.micro_batch, device.free_at);
    }
  }

  void end(std::size_t d, double time) {
    devices_[d].free_at = time;
    wake(d, time);
  }

  /// Delivers an activation to the next stage; the last stage starts its own backward pass.
  void pass_on_forward(Action action, double time) {
    if (action.stage + 1 < base_.stages)
      arrive(forward_arrival_, base_.device(action), action.stage + 1, action.micro_batch, time);
    else
      backward_arrival_[cell(action)] = time;
  }

  void arrive(std::vector<double>& arrivals, std::size_t from, int stage, std::uint32_t m,
              double time) {
    const std::size_t to = base_.route(m)[stage];
    if (to != from) time += settings_.hop;
    arrivals[cell(stage, m)] = time;
    wake(to, time);
  }

  const Schedule& base_;
  const RetimeSettings& settings_;
  std::vector<Device> devices_;
  std::vector<double> forward_arrival_;
  std::vector<double> backward_arrival_;
  std::priority_queue<Wake, std::vector<Wake>, std::greater<>> wakes_;
};

}  // namespace

std::optional<Schedule> retime(const Schedule& base, const RetimeSettings& settings) {
  return Retiming(base, settings).play();
}

std::vector<double> peak_stash(const Schedule& schedule, const RetimeSettings& settings) {
  std::vector<double> peaks;
  for (const Lane& lane : schedule.lanes) {
    double kept = 0;
    double freed_by_group = 0;
    double& peak = peaks.emplace_back(0.0);
    for (const Action action : lane) {
      const double stash = settings.stages[action.stage].stash;
      if (action.kind == Kind::forward) kept += stash;
      if (gives_weight_gradient(action.kind)) freed_by_group += stash;
      peak = std::max(peak, kept);
      if (action.flags & Action::with_next) continue;
      kept -= freed_by_group;
      freed_by_group = 0;
    }
  }
  return peaks;
}

}  // namespace troupe::schedules
