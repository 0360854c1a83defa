#include "schedules/simulate/simulator_engine.h"

#include <algorithm>
#include <cassert>

namespace troupe::schedules {

Simulator::Engine::Engine(const Schedule& schedule, const Costs& costs)
    : stages_(static_cast<std::size_t>(schedule.stages)),
      micro_batches_(static_cast<std::size_t>(schedule.micro_batches)),
      routes_(schedule.routes.size()),
      route_of_(schedule.route_of),
      launch_(costs.launch),
      overlap_(costs.overlap),
      slots_(static_cast<std::size_t>(costs.landing_slots)),
      devices_(schedule.lanes.size()),
      done_(2 * stages_ * micro_batches_) {
  for (std::size_t id = 0; id < devices_.size(); ++id) slowness_.push_back(costs.slowness_of(id));
  runnable_.reserve(devices_.size());
  times_.resize(stages_);
  for (std::size_t stage = 0; stage < stages_; ++stage)
    for (std::size_t kind = 0; kind < times_[stage].size(); ++kind)
      times_[stage][kind] = time_of(static_cast<Kind>(kind), costs.stages[stage]);
  lay_edges(schedule, costs);
  count_reductions(schedule);
}

void Simulator::Engine::lay_edges(const Schedule& schedule, const Costs& costs) {
  for (const auto& route : schedule.routes)
    device_of_.insert(device_of_.end(), route.begin(), route.end());
  const auto gradients = device_of_.size();
  edges_.resize(2 * gradients);
  for (std::size_t route = 0; route < routes_; ++route)
    for (std::size_t stage = 0; stage + 1 < stages_; ++stage) {
      const auto here = device_of_[at(route, stage)];
      const auto next = device_of_[at(route, stage + 1)];
      const double boundary = costs.stages[stage].boundary;
      edges_[at(route, stage + 1)] = {costs.travel(here, next, boundary), here != next};
      edges_[gradients + at(route, stage)] = {
          costs.travel(next, here, costs.stages[stage].boundary_back), here != next};
    }
  uses_.resize(edges_.size());
  used_.resize(edges_.size() * slots_);
}

void Simulator::Engine::count_reductions(const Schedule& schedule) {
  reductions_.resize(device_of_.size());
  for (std::uint32_t id = 0; id < schedule.lanes.size(); ++id)
    for (const auto action : schedule.lanes[id])
      if (action.kind == Kind::give) ++reductions_[holder(id, action.stage)];
  std::uint32_t all = 0;
  for (const auto count : reductions_) {
    first_reduction_.push_back(all);
    all += count;
  }
  reduced_.resize(all);
  given_.resize(device_of_.size());
}

void Simulator::Engine::start_over() {
  std::fill(devices_.begin(), devices_.end(), Device{});
  std::fill(uses_.begin(), uses_.end(), 0);
}

/// Plays one step with continuing clocks. Steps may be played one by one, because they share no
/// micro-batch and a device ends each step before it starts the next.
bool Simulator::Engine::play_step(const std::vector<Lane>& lanes) {
  assert(lanes.size() == devices_.size());
  std::fill(done_.begin(), done_.end(), not_yet);
  std::fill(given_.begin(), given_.end(), 0);
  runnable_.clear();
  for (auto id = static_cast<std::uint32_t>(devices_.size()); id-- > 0;) {
    devices_[id].position = 0;
    devices_[id].waits_for = none;
    runnable_.push_back(id);
  }
  while (!runnable_.empty()) {
    const auto id = runnable_.back();
    runnable_.pop_back();
    play_device(id, lanes[id]);
  }
  for (std::size_t id = 0; id < devices_.size(); ++id)
    if (devices_[id].position < lanes[id].size()) return false;
  return true;
}

double Simulator::Engine::end() const {
  double end = 0;
  for (const auto& device : devices_) end = std::max({end, device.clock, device.engine});
  return end;
}

/// Plays until the lane ends or an input is missing.
void Simulator::Engine::play_device(std::uint32_t id, const Lane& lane) {
  auto& device = devices_[id];
  while (device.position < lane.size()) {
    const auto action = lane[device.position];
    if (action.kind == Kind::give) {
      play_give(id, action);
    } else if (grouped_with_next(lane, device.position)) {
      if (!play_group(id, lane)) return;
    } else {
      Ready ready{device.clock};
      if (!inputs_ready(id, action, ready)) return;
      const double end = ready.time + duration(id, action);
      if (moments) note(id, device.position, ready, device.clock, end);
      device.clock = end;
      ++device.position;
      finish(action, end);
    }
  }
}

/// Plays a group. It starts when all inputs have arrived, and its members end together.
bool Simulator::Engine::play_group(std::uint32_t id, const Lane& lane) {
  auto& device = devices_[id];
  Ready ready{device.clock};
  double sum = 0, longest = 0;
  auto last = device.position;
  for (;; ++last) {
    if (!inputs_ready(id, lane[last], ready)) return false;
    const double time = duration(id, lane[last]);
    sum += time;
    longest = std::max(longest, time);
    if (!grouped_with_next(lane, last)) break;
  }
  const double end = ready.time + longest + (1 - overlap_) * (sum - longest);
  const double free = device.clock;
  device.clock = end;
  for (; device.position <= last; ++device.position) {
    if (moments) note(id, device.position, ready, free, end);
    finish(lane[device.position], end);
  }
  return true;
}

void Simulator::Engine::play_give(std::uint32_t id, Action action) {
  auto& device = devices_[id];
  Ready ready{device.engine, Wait::reduction};
  ready.at_least(device.clock, Wait::nothing);
  const double end = ready.time + times_[action.stage][static_cast<std::size_t>(Kind::give)];
  if (moments) note(id, device.position, ready, device.engine, end);
  device.engine = end;
  ++device.position;

  const auto who = holder(id, action.stage);
  assert(given_[who] < reductions_[who] && "lanes with more A than the schedule of make()");
  reduced_[first_reduction_[who] + given_[who]++] = end;
  for (std::size_t route = 0; route < routes_; ++route)
    happen(reduction_event(action.stage), end, device_of_[at(route, action.stage)]);
}

bool Simulator::Engine::happened(Device& device, std::uint32_t event) const {
  if (done_[event] != not_yet) return true;
  device.waits_for = event;
  return false;
}

/// Checks whether the action's inputs exist and raises `ready`; otherwise the device waits.
bool Simulator::Engine::inputs_ready(std::uint32_t id, Action action, Ready& ready) {
  auto& device = devices_[id];
  const std::size_t stage = action.stage;
  const auto m = action.micro_batch;
  switch (action.kind) {
    case Kind::forward:
      return stage == 0 || message_ready(device, forward_event(stage - 1, m),
                                         at(route(action), stage), Wait::activation, ready);
    case Kind::backward:
    case Kind::backward_input:
      return happened(device, forward_event(stage, m)) &&
             (stage + 1 == stages_ ||
              message_ready(device, backward_event(stage + 1, m),
                            device_of_.size() + at(route(action), stage), Wait::gradient, ready));
    case Kind::backward_weight:
      return happened(device, backward_event(stage, m));
    case Kind::recompute:
      return happened(device, forward_event(stage, m));
    case Kind::update:
      return reduction_ready(id, action, ready);
    case Kind::give:
    case Kind::gather:
    case Kind::release:
      return true;
  }
  return true;
}

bool Simulator::Engine::message_ready(Device& device, std::uint32_t event, std::size_t queue,
                                      Wait kind, Ready& ready) const {
  if (!happened(device, event)) return false;
  const auto& edge = edges_[queue];
  const double sent = done_[event];
  ready.at_least(sent + edge.travel, kind);
  if (slots_ > 0 && edge.remote && uses_[queue] >= slots_) {
    const double granted = used_[queue * slots_ + uses_[queue] % slots_];
    if (granted > sent) ready.at_least(granted + edge.travel, Wait::credit);
  }
  return true;
}

/// Checks whether all holders of the stage have given as often as this device.
bool Simulator::Engine::reduction_ready(std::uint32_t id, Action action, Ready& ready) {
  const auto count = given_[holder(id, action.stage)];
  if (count == 0) return true;
  for (std::size_t route = 0; route < routes_; ++route) {
    const auto other = holder(device_of_[at(route, action.stage)], action.stage);
    if (reductions_[other] == 0) continue;
    if (given_[other] < count) {
      devices_[id].waits_for = reduction_event(action.stage);
      return false;
    }
    ready.at_least(reduced_[first_reduction_[other] + count - 1], Wait::reduction);
  }
  return true;
}

void Simulator::Engine::finish(Action action, double end) {
  const std::size_t stage = action.stage;
  switch (action.kind) {
    case Kind::forward: {
      const auto here = at(route(action), stage);
      const auto reader = stage + 1 < stages_ ? device_of_[here + 1] : none;
      happen(forward_event(stage, action.micro_batch), end, reader);
      use_slot(here, end);
      return;
    }
    case Kind::backward:
    case Kind::backward_input: {
      const auto here = at(route(action), stage);
      const auto reader = stage > 0 ? device_of_[here - 1] : none;
      happen(backward_event(stage, action.micro_batch), end, reader);
      use_slot(device_of_.size() + here, end);
      return;
    }
    case Kind::backward_weight:
    case Kind::recompute:
    case Kind::give:
    case Kind::update:
    case Kind::gather:
    case Kind::release:
      return;
  }
}

void Simulator::Engine::happen(std::uint32_t event, double time, std::uint32_t reader) {
  if (event < done_.size()) done_[event] = time;
  if (reader == none || devices_[reader].waits_for != event) return;
  devices_[reader].waits_for = none;
  runnable_.push_back(reader);
}

void Simulator::Engine::use_slot(std::size_t queue, double time) {
  if (slots_ == 0 || !edges_[queue].remote) return;
  used_[queue * slots_ + uses_[queue]++ % slots_] = time;
}

void Simulator::Engine::note(std::uint32_t id, std::uint32_t position, Ready ready, double free,
                             double end) {
  moments->push_back({id, position, ready.wait, free, ready.time, end});
}

double Simulator::Engine::travel(Action to) const {
  const auto here = at(route(to), to.stage);
  return edges_[to.kind == Kind::forward ? here : device_of_.size() + here].travel;
}

}  // namespace troupe::schedules
