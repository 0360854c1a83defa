#include "schedules/search/list_schedule.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <queue>

namespace troupe::schedules {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
// Sums of activations in different order may differ in the last bits.
constexpr double rounding = 1 + 1e-9;

/// A stage on a device, with its micro-batches and progress.
struct Chunk {
  std::size_t stage = 0;
  std::vector<std::uint32_t> micro_batches;
  std::size_t next_forward = 0;
  std::size_t next_backward = 0;

  bool has_forward() const { return next_forward < micro_batches.size(); }
  bool has_backward() const { return next_backward < next_forward; }
};

struct Device {
  std::vector<Chunk> chunks;
  std::deque<Action> weights;  // W's whose I is done.
  double free_at = 0;
  double held = 0;
  double cap = never;
  int inside = 0;  // Micro-batches that started here and have not returned.
};

struct Wake {
  double time;
  std::size_t device;

  friend bool operator>(const Wake& a, const Wake& b) {
    return a.time != b.time ? a.time > b.time : a.device > b.device;
  }
};

class ListScheduler {
 public:
  ListScheduler(const Schedule& pipeline, const Costs& costs, const ListSettings& settings)
      : schedule_(pipeline),
        costs_(costs),
        settings_(settings),
        width_(static_cast<std::size_t>(pipeline.micro_batches)),
        devices_(pipeline.lanes.size()),
        forward_arrival_(static_cast<std::size_t>(pipeline.stages) * width_, never),
        backward_arrival_(forward_arrival_) {
    for (auto& lane : schedule_.lanes) lane.clear();
    std::fill_n(forward_arrival_.begin(), width_, 0.0);
    for (std::size_t id = 0; id < devices_.size(); ++id) {
      if (!settings.caps.empty()) devices_[id].cap = settings.caps[id] * rounding;
      wakes_.push({0, id});
    }
    for (std::size_t stage = 0; stage < static_cast<std::size_t>(pipeline.stages); ++stage)
      for (std::uint32_t m = 0; m < width_; ++m) chunk(pipeline.route(m)[stage], stage, m);
  }

  std::optional<Schedule> play() && {
    while (!wakes_.empty()) {
      const auto [time, id] = wakes_.top();
      wakes_.pop();
      if (devices_[id].free_at <= time) decide(id, time);
    }
    for (const auto& device : devices_) {
      if (!device.weights.empty()) return std::nullopt;
      for (const auto& chunk : device.chunks)
        if (chunk.next_backward < chunk.micro_batches.size()) return std::nullopt;
    }
    return std::move(schedule_);
  }

 private:
  void chunk(std::size_t id, std::size_t stage, std::uint32_t m) {
    auto& chunks = devices_[id].chunks;
    if (chunks.empty() || chunks.back().stage != stage) chunks.push_back({stage, {}, 0, 0});
    chunks.back().micro_batches.push_back(m);
  }

  std::size_t cell(std::size_t stage, std::uint32_t m) const { return stage * width_ + m; }

  void decide(std::size_t id, double now) {
    auto& device = devices_[id];
    double soonest = never;
    if (auto* next = best(device, now, &ListScheduler::backward_at, &Chunk::next_backward, soonest))
      return start_backward(id, *next, now);
    if (auto* next = best(device, now, &ListScheduler::forward_at, &Chunk::next_forward, soonest))
      return start_forward(id, *next, now);
    if (device.weights.empty()) return;
    const auto action = device.weights.front();
    const double weight = costs_.slowness_of(id) * costs_.stages[action.stage].backward_weight;
    if (soonest < now + settings_.patience * weight) return;  // Its arrival wakes the device.
    device.weights.pop_front();
    start(id, action, now);
  }

  /// Returns the chunk whose next pass goes first, or null if none can start now. Lowers `soonest`
  /// to the time at which one can.
  Chunk* best(Device& device, double now,
              double (ListScheduler::*start_at)(const Device&, const Chunk&) const,
              std::size_t Chunk::*next, double& soonest) {
    Chunk* found = nullptr;
    for (auto& chunk : device.chunks) {
      const double start = (this->*start_at)(device, chunk);
      soonest = std::min(soonest, start);
      if (start > now) continue;
      const bool goes_first = !found || settings_.first == First::deepest_stage ||
                              chunk.micro_batches[chunk.*next] < found->micro_batches[found->*next];
      if (goes_first) found = &chunk;  // Chunks are sorted by stage, the deepest last.
    }
    return found;
  }

  double backward_at(const Device&, const Chunk& chunk) const {
    if (!chunk.has_backward()) return never;
    return backward_arrival_[cell(chunk.stage, chunk.micro_batches[chunk.next_backward])];
  }

  double forward_at(const Device& device, const Chunk& chunk) const {
    if (!chunk.has_forward()) return never;
    if (chunk.stage == 0 && device.inside >= settings_.window) return never;
    if (device.held + costs_.stages[chunk.stage].activations > device.cap) return never;
    return forward_arrival_[cell(chunk.stage, chunk.micro_batches[chunk.next_forward])];
  }

  void start_forward(std::size_t id, Chunk& chunk, double now) {
    const auto m = chunk.micro_batches[chunk.next_forward++];
    if (chunk.stage == 0) ++devices_[id].inside;
    const double end = start(id, forward(static_cast<int>(chunk.stage), static_cast<int>(m)), now);
    if (chunk.stage + 1 == static_cast<std::size_t>(schedule_.stages))
      backward_arrival_[cell(chunk.stage, m)] = end;
    else
      send(forward_arrival_, id, chunk.stage + 1, m, costs_.stages[chunk.stage].boundary, end);
  }

  void start_backward(std::size_t id, Chunk& chunk, double now) {
    const auto m = chunk.micro_batches[chunk.next_backward++];
    if (chunk.stage == 0) --devices_[id].inside;
    const double end =
        start(id, backward_input(static_cast<int>(chunk.stage), static_cast<int>(m)), now);
    devices_[id].weights.push_back(
        backward_weight(static_cast<int>(chunk.stage), static_cast<int>(m)));
    if (chunk.stage > 0)
      send(backward_arrival_, id, chunk.stage - 1, m, costs_.stages[chunk.stage - 1].boundary_back,
           end);
  }

  double start(std::size_t id, Action action, double now) {
    auto& device = devices_[id];
    const auto& stage = costs_.stages[action.stage];
    const auto stash = stash_of(action, stage);
    // The device decides again only when the action ends, so freeing early here has no effect.
    device.held += stash.taken - stash.given;
    device.free_at = now + costs_.launch + costs_.slowness_of(id) * time_of(action.kind, stage);
    wakes_.push({device.free_at, id});
    schedule_.lanes[id].push_back(action);
    return device.free_at;
  }

  void send(std::vector<double>& arrivals, std::size_t from, std::size_t stage, std::uint32_t m,
            double boundary, double time) {
    const std::size_t to = schedule_.route(m)[stage];
    const double arrival = time + costs_.travel(from, to, boundary);
    arrivals[cell(stage, m)] = arrival;
    wakes_.push({arrival, to});
  }

  Schedule schedule_;
  const Costs& costs_;
  const ListSettings& settings_;
  std::size_t width_;
  std::vector<Device> devices_;
  std::vector<double> forward_arrival_;  // Indexed by stage and micro-batch.
  std::vector<double> backward_arrival_;
  std::priority_queue<Wake, std::vector<Wake>, std::greater<>> wakes_;
};

}  // namespace

std::optional<Schedule> list_schedule(const Schedule& pipeline, const Costs& costs,
                                      const ListSettings& settings) {
  return ListScheduler(pipeline, costs, settings).play();
}

}  // namespace troupe::schedules
