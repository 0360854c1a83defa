#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/digest.h"

namespace troupe::schedules {

/// What a device does in one action. The letter is how the action prints.
enum class Kind : std::uint8_t {
  forward,          // F: a micro-batch through a stage
  backward,         // B: gradients for the stage's input and for its weights
  backward_input,   // I: the first half of B
  backward_weight,  // W: the second half of B
  recompute,        // R: a forward pass once more, for a stage that kept its input alone
  give,             // A: gives the stage's gradients away, to be reduced
  update,           // O: takes the stepped weights
  gather,           // G: makes sharded weights whole
  release,          // U: lets whole weights go again
};

char letter(Kind kind);

/// Whether an action of this kind belongs to one micro-batch (F B I W R) or to the stage (A O G U).
constexpr bool has_micro_batch(Kind kind) { return kind <= Kind::recompute; }

/// Whether gradients for a stage's input, or for its weights, come out of an action of this kind.
constexpr bool gives_input_gradient(Kind kind) {
  return kind == Kind::backward || kind == Kind::backward_input;
}
constexpr bool gives_weight_gradient(Kind kind) {
  return kind == Kind::backward || kind == Kind::backward_weight;
}

/// One thing that a device does. A schedule holds no times: what it says is an order.
struct Action {
  enum Flag : std::uint8_t {
    with_next = 1,     // (0F1+1B0): overlaps with the action after it
    floating = 2,      // 0W1~: may start earlier, any time after its I; this place is its deadline
    checkpointed = 4,  // 0F1': keeps its input alone; an R comes before the backward pass
    numbered = 8,      // 0O3, 0A3: amid the passes, once the backward pass of micro-batch 3 is done
  };

  Kind kind = Kind::forward;
  std::uint8_t flags = 0;
  std::uint16_t stage = 0;
  std::uint32_t micro_batch = 0;

  friend bool operator==(const Action&, const Action&) = default;
};
static_assert(sizeof(Action) == 8);

constexpr Action action(Kind kind, int stage, int m, int flags = 0) {
  return {kind, static_cast<std::uint8_t>(flags), static_cast<std::uint16_t>(stage),
          static_cast<std::uint32_t>(m)};
}
constexpr Action forward(int stage, int m) { return action(Kind::forward, stage, m); }
constexpr Action backward(int stage, int m) { return action(Kind::backward, stage, m); }
constexpr Action backward_input(int stage, int m) { return action(Kind::backward_input, stage, m); }
constexpr Action backward_weight(int stage, int m) {
  return action(Kind::backward_weight, stage, m);
}
constexpr Action recompute(int stage, int m) { return action(Kind::recompute, stage, m); }
constexpr Action give(int stage) { return action(Kind::give, stage, 0); }
constexpr Action give_after(int stage, int m) {
  return action(Kind::give, stage, m, Action::numbered);
}
constexpr Action update(int stage) { return action(Kind::update, stage, 0); }
constexpr Action update_after(int stage, int m) {
  return action(Kind::update, stage, m, Action::numbered);
}

/// "2F0"; flags as the canonical text has them: "2F0'", "2W0~". A group is the lane's to print.
std::string to_string(Action action);

/// What one device does in a step, in this order.
using Lane = std::vector<Action>;

/// "0F0 0F1 (0F2+1B0) 0A 0O"
std::string to_string(const Lane& lane);

/// Which device holds each stage, for the micro-batches that take this route.
using Route = std::vector<std::uint16_t>;

/// A step of a pipeline: for every device its lane. Micro-batch m takes route
/// `route_of[m % route_of.size()]`; a straight pipeline has the one route 0.
struct Schedule {
  std::string name;
  int stages = 0;
  int micro_batches = 0;
  std::vector<Route> routes;
  std::vector<std::uint16_t> route_of = {0};
  std::vector<Lane> lanes;

  int devices() const { return static_cast<int>(lanes.size()); }
  const Route& route(std::uint32_t micro_batch) const {
    return routes[route_of[micro_batch % route_of.size()]];
  }
  int device(Action action) const { return route(action.micro_batch)[action.stage]; }

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// Over the canonical text: two ends that agree on it play the same schedule.
Digest digest(const Schedule& schedule);

/// What a generator is asked for. A pipeline has stages / chunks devices.
struct PipelineShape {
  int stages = 1;
  int micro_batches = 1;
  int chunks = 1;

  int devices() const { return stages / chunks; }
};

}  // namespace troupe::schedules
