#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "schedules/schedule.h"
#include "schedules/simulate/simulate_costs.h"
#include "schedules/simulate/simulator.h"

namespace troupe::schedules {

/// The implementation of Simulator.
///
/// An event means that a stage has passed on a micro-batch in one direction. F and B or I make
/// events, and every wait is for an event. `done_` holds the times of events.
class Simulator::Engine {
 public:
  Engine(const Schedule& schedule, const Costs& costs);

  void start_over();
  bool play_step(const std::vector<Lane>& lanes);
  double end() const;
  std::string blocked(const std::vector<Lane>& lanes) const;
  double travel(Action to) const;

  std::vector<Moment>* moments = nullptr;  // Receives the moments; may be null.

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr double not_yet = -1;

  /// The connection of two neighbouring stages, seen from the receiver.
  struct Edge {
    double travel = 0;
    bool remote = false;
  };

  struct Device {
    double clock = 0;   // End of its last action.
    double engine = 0;  // End of its last reduction.
    std::uint32_t position = 0;
    std::uint32_t waits_for = none;  // The event that the device needs to continue.
  };

  /// The time at which an action can start, and the last reason for waiting.
  struct Ready {
    double time = 0;
    Wait wait = Wait::nothing;

    void at_least(double other, Wait cause) {
      if (other > time) *this = {other, cause};
    }
  };

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
  /// Returns the index of a device's stage: its first route that holds the stage.
  std::size_t holder(std::uint32_t id, std::size_t stage) const {
    std::size_t route = 0;
    while (route + 1 < routes_ && device_of_[at(route, stage)] != id) ++route;
    return at(route, stage);
  }

  std::size_t stages_;
  std::size_t micro_batches_;
  std::size_t routes_;
  std::vector<std::uint16_t> route_of_;
  std::vector<std::uint32_t> device_of_;      // Indexed by at(route, stage).
  std::vector<std::array<double, 9>> times_;  // Indexed by stage and kind.
  std::vector<double> slowness_;
  double launch_;
  double overlap_;
  std::vector<Edge> edges_;  // Edges of activations, then of gradients. An edge is a queue.
  std::size_t slots_;

  std::vector<Device> devices_;
  std::vector<double> done_;             // Indexed by event.
  std::vector<std::uint32_t> runnable_;  // A stack of devices that may continue.
  std::vector<double> used_;         // Indexed by queue and slot: when its last message was used.
  std::vector<std::uint32_t> uses_;  // Indexed by queue.
  std::vector<std::uint32_t> first_reduction_;  // Indexed by holder: its first entry in reduced_.
  std::vector<std::uint32_t> reductions_;       // Indexed by holder: the number in a step.
  std::vector<std::uint32_t> given_;            // Indexed by holder: the number so far.
  std::vector<double> reduced_;
};

}  // namespace troupe::schedules
