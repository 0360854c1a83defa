#include "schedules/simulator.h"

#include <algorithm>
#include <array>
#include <span>

namespace troupe::schedules {
namespace {

constexpr std::uint32_t none = ~std::uint32_t{0};
constexpr double not_yet = -1;

/// What stands between two neighbouring stages, seen from the one that waits for the message.
struct Edge {
  double travel = 0;
  bool remote = false;
};

struct Device {
  double clock = 0;   // When it has done its last action.
  double engine = 0;  // When its reduction engine has.
  std::uint32_t position = 0;
  std::uint32_t waits_for = none;  // The event without which it cannot go on.
};

/// When an action can start, and what it waited for last.
struct Ready {
  double time = 0;
  Wait wait = Wait::nothing;

  void at_least(double other, Wait cause) {
    if (other > time) *this = {other, cause};
  }
};

}  // namespace

bool grouped_with_next(const Lane& lane, std::size_t position) {
  return (lane[position].flags & Action::with_next) && position + 1 < lane.size() &&
         lane[position].kind != Kind::give && lane[position + 1].kind != Kind::give;
}

/// An event is that a stage has passed a micro-batch on, in one direction or the other: F and B or
/// I make events, and all that waits waits for one. The values in `done_` are their times.
class Simulator::Engine {
 public:
  Engine(const Schedule& schedule, const Costs& costs);

  void start_over();
  bool play_step(const std::vector<Lane>& lanes);
  double end() const;
  std::string blocked(const std::vector<Lane>& lanes) const;
  double travel(Action to) const;

  std::vector<Moment>* moments = nullptr;

 private:
  void lay_edges(const Schedule& schedule, const Costs& costs);
  void count_reductions(const Schedule& schedule);
  void play_device(std::uint32_t id, const Lane& lane);
  bool play_group(std::uint32_t id, const Lane& lane);
  void play_give(std::uint32_t id, Action action);
  bool inputs_ready(std::uint32_t id, Action action, Ready& ready);
  bool happened(Device& device, std::uint32_t event) const;
  bool message_ready(Device& device, std::uint32_t event, std::size_t queue, Wait kind,
                     Ready& ready) const;
  bool reduction_ready(std::uint32_t id, Action action, Ready& ready);
  void finish(Action action, double end);
  void happen(std::uint32_t event, double time, std::uint32_t reader);
  void use_slot(std::size_t queue, double time);
  void note(std::uint32_t id, std::uint32_t position, Ready ready, double free, double end);
  std::string describe_event(std::uint32_t event, std::uint32_t waiting,
                             const std::vector<Lane>& lanes) const;

  std::size_t route(Action action) const {
    return route_of_.size() == 1 ? route_of_[0] : route_of_[action.micro_batch % route_of_.size()];
  }
  std::size_t at(std::size_t route, std::size_t stage) const { return route * stages_ + stage; }
  std::uint32_t forward_event(std::size_t stage, std::uint32_t m) const {
    return static_cast<std::uint32_t>(stage * micro_batches_ + m);
  }
  std::uint32_t backward_event(std::size_t stage, std::uint32_t m) const {
    return static_cast<std::uint32_t>((stages_ + stage) * micro_batches_ + m);
  }
  std::uint32_t reduction_event(std::size_t stage) const {
    return static_cast<std::uint32_t>(2 * stages_ * micro_batches_ + stage);
  }
  double duration(std::uint32_t id, Action action) const {
    return launch_ + slowness_[id] * times_[action.stage][static_cast<std::size_t>(action.kind)];
  }
  /// The first route on which this device holds the stage stands for the device.
  std::size_t holder(std::uint32_t id, std::size_t stage) const {
    std::size_t route = 0;
    while (route + 1 < routes_ && device_of_[at(route, stage)] != id) ++route;
    return at(route, stage);
  }

  std::size_t stages_;
  std::size_t micro_batches_;
  std::size_t routes_;
  std::vector<std::uint16_t> route_of_;
  std::vector<std::uint32_t> device_of_;      // By route and stage, as all that follows `at`.
  std::vector<std::array<double, 9>> times_;  // By stage and kind.
  std::vector<double> slowness_;
  double launch_;
  double overlap_;
  std::vector<Edge> edges_;  // Of activations; then, as many, of gradients. An edge is a queue.
  std::size_t slots_;

  std::vector<Device> devices_;
  std::vector<double> done_;             // By event.
  std::vector<std::uint32_t> runnable_;  // A stack of devices that may go on.
  std::vector<double> used_;             // By queue and slot: when its last message was used.
  std::vector<std::uint32_t> uses_;      // By queue.
  std::vector<std::uint32_t> first_reduction_;  // By holder: where in reduced_ its own begin.
  std::vector<std::uint32_t> reductions_;       // By holder: how many a step has,
  std::vector<std::uint32_t> given_;            // and how many it had so far.
  std::vector<double> reduced_;
};

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
      edges_[gradients + at(route, stage)] = {costs.travel(next, here, boundary), here != next};
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

/// Steps share no micro-batch, and no device comes to its next step before the end of this one: so
/// one step after the other, with the clocks going on, is as good as all at once.
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

/// Plays on until the lane ends or an input is missing.
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

/// A group starts when all its inputs are there, and its members end together.
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

/// Whether the action can start, after what `ready` says already; if not, the device waits.
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

/// An update takes what all who hold the stage have given as often as this device has.
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

/// "1I0 of device 1", and what is wrong with it where it will never come.
std::string Simulator::Engine::describe_event(std::uint32_t event, std::uint32_t waiting,
                                              const std::vector<Lane>& lanes) const {
  if (event >= done_.size())
    return "the gradients of stage " + std::to_string(event - done_.size()) +
           " from all who hold it";
  const auto pass = event / micro_batches_;
  const auto stage = pass % stages_;
  const auto m = static_cast<std::uint32_t>(event % micro_batches_);
  auto awaited = pass < stages_ ? forward(static_cast<int>(stage), static_cast<int>(m))
                                : backward(static_cast<int>(stage), static_cast<int>(m));
  const auto id = device_of_[at(route(awaited), stage)];
  const auto& lane = lanes[id];
  const auto found = std::find_if(lane.begin(), lane.end(), [&](Action action) {
    const bool same_pass = action.kind == awaited.kind ||
                           (awaited.kind == Kind::backward && action.kind == Kind::backward_input);
    return same_pass && action.stage == awaited.stage && action.micro_batch == m;
  });
  if (found != lane.end()) awaited.kind = found->kind;
  auto text = to_string(awaited);
  if (id != waiting) text += " of device " + std::to_string(id);
  if (found == lane.end()) return text + ", which is not in its lane";
  if (id == waiting) return text + ", which comes later in its own lane";
  return text;
}

std::string Simulator::Engine::blocked(const std::vector<Lane>& lanes) const {
  constexpr int most = 8;
  int count = 0;
  std::string text;
  for (std::uint32_t id = 0; id < devices_.size(); ++id) {
    const auto& device = devices_[id];
    if (device.position >= lanes[id].size()) continue;
    if (++count > most) continue;
    if (!text.empty()) text += "\n";
    text += "device " + std::to_string(id) + " waits forever at action " +
            std::to_string(device.position) + ", " + to_string(lanes[id][device.position]) +
            ", for " + describe_event(device.waits_for, id, lanes);
  }
  if (count > most) text += "\nand so do " + std::to_string(count - most) + " more devices";
  return text;
}

namespace {

Status check_ids(const Schedule& schedule) {
  const auto error = [&](const std::string& text) {
    return Error{"schedule '" + schedule.name + "': " + text};
  };
  if (schedule.stages < 1 || schedule.micro_batches < 1 || schedule.lanes.empty())
    return error("needs a stage, a micro-batch and a device at least");
  const auto stages = static_cast<std::size_t>(schedule.stages);
  std::size_t actions = 0;
  for (const auto& lane : schedule.lanes) actions += lane.size();
  // Every stage passes every micro-batch on: this also bounds what a simulation allocates.
  const auto passes = stages * static_cast<std::size_t>(schedule.micro_batches);
  if (passes > actions || passes >= none / 4)
    return error("has " + std::to_string(actions) + " actions, too few for " +
                 std::to_string(stages) + " stages and " + std::to_string(schedule.micro_batches) +
                 " micro-batches");

  if (schedule.routes.empty() || schedule.route_of.empty()) return error("has no route");
  for (const auto route : schedule.route_of)
    if (route >= schedule.routes.size())
      return error("a micro-batch takes route " + std::to_string(route) + " of " +
                   std::to_string(schedule.routes.size()));
  for (const auto& route : schedule.routes) {
    if (route.size() != stages)
      return error("a route has " + std::to_string(route.size()) +
                   " stages; wanted: " + std::to_string(stages));
    for (const auto device : route)
      if (device >= schedule.lanes.size())
        return error("a route leads to device " + std::to_string(device) + " of " +
                     std::to_string(schedule.lanes.size()));
  }
  return Done{};
}

bool holds(const Schedule& schedule, std::size_t device, std::size_t stage) {
  return std::any_of(schedule.routes.begin(), schedule.routes.end(),
                     [&](const Route& route) { return route[stage] == device; });
}

Status check_actions(const Schedule& schedule) {
  for (std::size_t id = 0; id < schedule.lanes.size(); ++id)
    for (const auto action : schedule.lanes[id]) {
      std::string wrong;
      if (action.stage >= schedule.stages)
        wrong = "has no such stage";
      else if (!has_micro_batch(action.kind) && !holds(schedule, id, action.stage))
        wrong = "does not place that stage there";
      else if (has_micro_batch(action.kind) &&
               action.micro_batch >= static_cast<std::uint32_t>(schedule.micro_batches))
        wrong = "has no such micro-batch";
      else if (has_micro_batch(action.kind) && schedule.device(action) != static_cast<int>(id))
        wrong = "places it on device " + std::to_string(schedule.device(action));
      if (!wrong.empty())
        return Error{"device " + std::to_string(id) + " lists " + to_string(action) +
                     ", but schedule '" + schedule.name + "' " + wrong};
    }
  return Done{};
}

}  // namespace

Simulator::Simulator(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
Simulator::~Simulator() = default;
Simulator::Simulator(Simulator&&) noexcept = default;
Simulator& Simulator::operator=(Simulator&&) noexcept = default;

Result<Simulator> Simulator::make(const Schedule& schedule, const Costs& costs) {
  if (auto fine = check_ids(schedule); !fine) return fine.error();
  if (auto fine = check_actions(schedule); !fine) return fine.error();
  if (auto fine = check_costs(costs, schedule.stages, schedule.devices()); !fine)
    return fine.error();
  return Simulator(std::make_unique<Engine>(schedule, costs));
}

std::optional<double> Simulator::makespan(const std::vector<Lane>& lanes) {
  engine_->start_over();
  if (!engine_->play_step(lanes)) return std::nullopt;
  return engine_->end();
}

std::optional<double> Simulator::period(const std::vector<Lane>& lanes) {
  engine_->start_over();
  double third = 0;
  for (int step = 0; step < 4; ++step) {
    third = engine_->end();
    if (!engine_->play_step(lanes)) return std::nullopt;
  }
  return engine_->end() - third;
}

bool Simulator::record(const std::vector<Lane>& lanes, std::vector<Moment>& moments) {
  moments.clear();
  engine_->moments = &moments;
  engine_->start_over();
  const bool finished = engine_->play_step(lanes);
  engine_->moments = nullptr;
  return finished;
}

std::string Simulator::blocked(const std::vector<Lane>& lanes) const {
  return engine_->blocked(lanes);
}

double Simulator::travel(Action to) const { return engine_->travel(to); }

}  // namespace troupe::schedules
