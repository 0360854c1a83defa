#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/digest.h"

namespace troupe::schedules {

/// The kinds of action of a device. The letter is the printed form.
enum class Kind : std::uint8_t {
  forward,          // F: the forward pass of a micro-batch through a stage
  backward,         // B: computes the gradients of the stage's input and of its weights
  backward_input,   // I: the first half of B
  backward_weight,  // W: the second half of B
  recompute,        // R: repeats the forward pass of a stage that kept only its input
  give,             // A: sends the stage's gradients to be reduced
  update,           // O: receives the weights that the optimizer has stepped
  gather,           // G: all-gathers sharded weights
  release,          // U: frees gathered weights
};

char letter(Kind kind);

/// Returns whether the kind belongs to one micro-batch (F B I W R) or to the stage (A O G U).
constexpr bool has_micro_batch(Kind kind) { return kind <= Kind::recompute; }

/// Return whether the kind computes gradients for a stage's input, or for its weights.
constexpr bool gives_input_gradient(Kind kind) {
  return kind == Kind::backward || kind == Kind::backward_input;
}
constexpr bool gives_weight_gradient(Kind kind) {
  return kind == Kind::backward || kind == Kind::backward_weight;
}

/// One action of a device. A schedule fixes the order of actions, not their times.
struct Action {
  enum Flag : std::uint8_t {
    with_next = 1,  // (0F1+1B0): overlaps with the next action
    floating = 2,   // 0W1~: may start any time after its I; its place in the lane is the deadline
    checkpointed = 4,  // 0F1': keeps only its input; an R comes before the backward pass
    numbered = 8,      // 0O3, 0A3: between passes, after the backward pass of micro-batch 3
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

/// Prints one action with its flags: "2F0", "2F0'", "2W0~". Lanes print the groups.
std::string to_string(Action action);

/// The actions of one device in a step, in order.
using Lane = std::vector<Action>;

/// Prints a lane: "0F0 0F1 (0F2+1B0) 0A 0O".
std::string to_string(const Lane& lane);

/// The device of each stage, for the micro-batches that take this route.
using Route = std::vector<std::uint16_t>;

/// One training step of a pipeline: a lane for each device. Micro-batch m takes route `route_of[m %
/// route_of.size()]`. A straight pipeline has only route 0.
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

/// Returns the digest of the canonical text. Processes with equal digests play the same schedule.
Digest digest(const Schedule& schedule);

/// The input of a schedule generator. A pipeline has stages / chunks devices.
struct PipelineShape {
  int stages = 1;
  int micro_batches = 1;
  int chunks = 1;

  int devices() const { return stages / chunks; }
};

}  // namespace troupe::schedules
