#include "schedules/simulate/simulate_graph.h"

#include <algorithm>
#include <utility>

namespace troupe::schedules {
namespace {

constexpr std::uint32_t no_node = ~std::uint32_t{0};

/// The messages of one kind to one stage over one route, in order of use.
struct Queue {
  std::vector<double> sent;
  std::vector<double> started;       // The start times of the actions that use the messages.
  std::vector<std::uint32_t> users;  // Their moments.

  int deepest() {
    std::sort(sent.begin(), sent.end());
    std::sort(started.begin(), started.end());
    int most = 0, waiting = 0;
    std::size_t used = 0;
    for (const double now : sent) {
      ++waiting;
      for (; used < started.size() && started[used] <= now; ++used) --waiting;
      most = std::max(most, waiting);
    }
    return most;
  }
};

/// A device that gives a stage's gradients to a reduction, and the moments of its A's.
struct Giver {
  std::uint32_t device;
  std::vector<std::uint32_t> gives;
};

}  // namespace

/// Visits the moments in order and remembers those on which later ones can depend.
class StepGraph::Builder {
 public:
  Builder(StepGraph& graph, const Simulator& simulator, int landing_slots)
      : graph_(graph),
        schedule_(graph.schedule_),
        moments_(graph.moments_),
        simulator_(simulator),
        slots_(static_cast<std::size_t>(landing_slots)),
        passes_(static_cast<std::size_t>(schedule_.stages) *
                static_cast<std::size_t>(schedule_.micro_batches)),
        forward_(passes_, no_node),
        backward_(passes_, no_node),
        previous_(schedule_.lanes.size(), no_node),
        previous_give_(schedule_.lanes.size(), no_node),
        queues_(2 * schedule_.routes.size() * static_cast<std::size_t>(schedule_.stages)),
        givers_(static_cast<std::size_t>(schedule_.stages)) {}

  void build() {
    for (std::uint32_t moment = 0; moment < moments_.size();) {
      const auto end = static_cast<std::uint32_t>(graph_.group_end(moment));
      for (auto member = moment; member < end; ++member) {
        graph_.first_.push_back(graph_.dependences_.size());
        add_dependences(member);
      }
      for (auto member = moment; member < end; ++member) remember(member);
      moment = end;
    }
    graph_.first_.push_back(graph_.dependences_.size());
    for (auto& queue : queues_)
      graph_.deepest_queue_ = std::max(graph_.deepest_queue_, queue.deepest());
  }

 private:
  void depend(std::uint32_t before, double travel = 0) {
    if (before != no_node) graph_.dependences_.push_back({before, travel});
  }

  void add_dependences(std::uint32_t moment) {
    const auto action = graph_.action(moment);
    const auto device = moments_[moment].device;
    depend(previous_[device]);
    switch (action.kind) {
      case Kind::forward:
        if (action.stage > 0) add_message(moment, action, forward_[pass(action) - width()]);
        return;
      case Kind::backward:
      case Kind::backward_input:
        if (action.stage + 1 < schedule_.stages)
          add_message(moment, action, backward_[pass(action) + width()]);
        return;
      case Kind::give:
        depend(previous_give_[device]);
        return;
      case Kind::update:
        add_reduction(device, action);
        return;
      case Kind::backward_weight:
      case Kind::recompute:
      case Kind::gather:
      case Kind::release:
        return;
    }
  }

  void add_message(std::uint32_t moment, Action action, std::uint32_t sender) {
    const double travel = simulator_.travel(action);
    depend(sender, travel);
    if (moments_[sender].device == moments_[moment].device) return;
    auto& queue = queue_of(action);
    if (slots_ > 0 && queue.users.size() >= slots_)
      depend(queue.users[queue.users.size() - slots_], travel);
    queue.sent.push_back(moments_[sender].end);
    queue.started.push_back(moments_[moment].start);
    queue.users.push_back(moment);
  }

  /// Makes an update wait for each device's A with the same count as its own device's last A.
  void add_reduction(std::uint32_t device, Action action) {
    const auto count = giver(action.stage, device).gives.size();
    if (count == 0) return;
    for (const auto& other : givers_[action.stage])
      if (other.gives.size() >= count) depend(other.gives[count - 1]);
  }

  void remember(std::uint32_t moment) {
    const auto action = graph_.action(moment);
    const auto device = moments_[moment].device;
    if (action.kind == Kind::give) {
      previous_give_[device] = moment;
      giver(action.stage, device).gives.push_back(moment);
      return;
    }
    previous_[device] = moment;
    if (action.kind == Kind::forward) forward_[pass(action)] = moment;
    if (action.kind == Kind::backward || action.kind == Kind::backward_input)
      backward_[pass(action)] = moment;
  }

  Giver& giver(std::size_t stage, std::uint32_t device) {
    for (auto& one : givers_[stage])
      if (one.device == device) return one;
    return givers_[stage].emplace_back(Giver{device, {}});
  }
  std::size_t width() const { return static_cast<std::size_t>(schedule_.micro_batches); }
  std::size_t pass(Action action) const { return action.stage * width() + action.micro_batch; }
  Queue& queue_of(Action action) {
    const std::size_t route = schedule_.route_of[action.micro_batch % schedule_.route_of.size()];
    const std::size_t kind = action.kind == Kind::forward ? 0 : 1;
    return queues_[(route * static_cast<std::size_t>(schedule_.stages) + action.stage) * 2 + kind];
  }

  StepGraph& graph_;
  const Schedule& schedule_;
  const std::vector<Moment>& moments_;
  const Simulator& simulator_;
  std::size_t slots_;
  std::size_t passes_;
  std::vector<std::uint32_t> forward_;  // The moment, by stage and micro-batch.
  std::vector<std::uint32_t> backward_;
  std::vector<std::uint32_t> previous_;  // Indexed by device: the last moment that occupied it.
  std::vector<std::uint32_t> previous_give_;
  std::vector<Queue> queues_;
  std::vector<std::vector<Giver>> givers_;  // Indexed by stage.
};

StepGraph::StepGraph(const Schedule& schedule, const std::vector<Moment>& moments,
                     const Simulator& simulator, int landing_slots)
    : schedule_(schedule), moments_(moments) {
  first_.reserve(moments.size() + 1);
  Builder(*this, simulator, landing_slots).build();
}

Action StepGraph::action(std::size_t moment) const {
  return schedule_.lanes[moments_[moment].device][moments_[moment].position];
}

std::size_t StepGraph::group_end(std::size_t moment) const {
  while (grouped_with_next(schedule_.lanes[moments_[moment].device], moments_[moment].position))
    ++moment;
  return moment + 1;
}

std::size_t StepGraph::group_begin(std::size_t moment) const {
  while (moments_[moment].position > 0 &&
         grouped_with_next(schedule_.lanes[moments_[moment].device], moments_[moment].position - 1))
    --moment;
  return moment;
}

std::vector<double> StepGraph::slacks(double makespan) const {
  std::vector<double> latest(moments_.size(), makespan);
  for (auto end = moments_.size(); end > 0;) {
    const auto begin = group_begin(end - 1);
    const double last_end = *std::min_element(latest.begin() + static_cast<std::ptrdiff_t>(begin),
                                              latest.begin() + static_cast<std::ptrdiff_t>(end));
    const double last_start = last_end - (moments_[begin].end - moments_[begin].start);
    for (auto member = begin; member < end; ++member) {
      latest[member] = last_end;
      for (const auto& dependence : before(member))
        latest[dependence.before] =
            std::min(latest[dependence.before], last_start - dependence.travel);
    }
    end = begin;
  }
  // Sums in different order differ by rounding, which is not slack.
  const double rounding = 1e-9 * makespan;
  for (std::size_t moment = 0; moment < moments_.size(); ++moment) {
    const double slack = latest[moment] - moments_[moment].end;
    latest[moment] = slack > rounding ? slack : 0;
  }
  return latest;
}

std::vector<std::uint32_t> StepGraph::critical_path() const {
  std::vector<std::uint32_t> path;
  std::uint32_t next = no_node;
  for (std::uint32_t moment = 0; moment < moments_.size(); ++moment)
    if (next == no_node || moments_[moment].end > moments_[next].end) next = moment;
  while (next != no_node) {
    path.push_back(next);
    const auto begin = group_begin(next);
    const auto end = group_end(next);
    const double start = moments_[next].start;
    next = no_node;
    for (auto member = begin; member < end && next == no_node; ++member)
      for (const auto& dependence : before(member))
        if (moments_[dependence.before].end + dependence.travel == start) {
          next = dependence.before;
          break;
        }
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace troupe::schedules
