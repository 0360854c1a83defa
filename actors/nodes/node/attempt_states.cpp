#include <algorithm>
#include <chrono>
#include <utility>

#include "actors/nodes/node/attempt_work.h"

namespace troupe::actors {
namespace {

constexpr auto state_patience = std::chrono::seconds(60);

}  // namespace

Status NodeAttempt::Work::check_start() const {
  const auto& placement = order_.prepare.placement;
  if (start_.addresses.size() != static_cast<std::size_t>(placement.processes) ||
      start_.tokens.size() != start_.addresses.size())
    return Error{"found " + std::to_string(start_.addresses.size()) + " addresses and " +
                 std::to_string(start_.tokens.size()) + " tokens for " +
                 std::to_string(placement.processes) + " processes"};
  const auto fits = [&](std::size_t count) {
    return count == 0 || count == placement.optimizers.size();
  };
  if (!fits(start_.states.size()) || !fits(start_.keepers.size()))
    return Error{"found " + std::to_string(start_.states.size()) + " states and keepers of " +
                 std::to_string(start_.keepers.size()) + ", wanted those of " +
                 std::to_string(placement.optimizers.size()) + " optimizers"};
  for (const auto& keepers : start_.keepers)
    for (const int process : keepers)
      if (process >= placement.head() || !store_)
        return Error{"found process " + std::to_string(process) +
                     " as a keeper, but nothing is kept there"};
  for (const int process : start_.states)
    if (process >= placement.processes)
      return Error{"found a state in process " + std::to_string(process) + " of " +
                   std::to_string(placement.processes)};
  return Done{};
}

/// Gives other processes the states that they need, and waits for those of the optimizers here.
void NodeAttempt::Work::load() {
  if (auto given = give_states(); !given) return fail(given.error().text);
  timer_ = context_.loop.after(state_patience, [this] {
    timer_.reset();
    for (std::size_t i = 0; i < start_.states.size(); ++i) {
      const PlayerId optimizer{PlayerId::Kind::optimizer, static_cast<int>(i)};
      if (is_here(optimizer) && !states_.contains(optimizer))
        return fail(missing(optimizer, "").text);
    }
  });
  look_for_states();
}

/// Sends the states that other processes need.
Status NodeAttempt::Work::give_states() {
  for (std::size_t i = 0; i < start_.states.size(); ++i) {
    const PlayerId optimizer{PlayerId::Kind::optimizer, static_cast<int>(i)};
    if (start_.states[i] != order_.prepare.here || is_here(optimizer)) continue;
    const auto state = store_ ? store_->find(optimizer.index, start_.step) : std::nullopt;
    if (!state)
      return Error{"the state of the " + title_of(*spec_, optimizer) + " after step " +
                   std::to_string(start_.step) + " is not kept here any more"};
    const auto to = order_.prepare.placement.process_of(optimizer);
    if (auto sent = mesh_->send(to, optimizer, to_wire_message(*state, *memory_)); !sent)
      return sent;
    context_.env.point("state_given");
  }
  return Done{};
}

/// Plays once the state of each optimizer here has come.
void NodeAttempt::Work::look_for_states() {
  if (phase_ != Phase::loading) return;
  bool has_all = true;
  for (std::size_t i = 0; i < start_.states.size(); ++i) {
    const PlayerId optimizer{PlayerId::Kind::optimizer, static_cast<int>(i)};
    if (!is_here(optimizer) || states_.contains(optimizer)) continue;
    std::optional<Result<StartPoint>> state;
    if (start_.states[i] == order_.prepare.here)
      state = own_state(optimizer);
    else if (auto came = take_state(optimizer))
      state = read_state(optimizer, std::move(*came));
    else if (const auto lost = this->lost())
      state = missing(optimizer, ": " + lost->why);
    if (state && !*state) return fail(state->error().text);
    if (state)
      states_.emplace(optimizer, std::move(**state));
    else
      has_all = false;
  }
  if (has_all) play();
}

Error NodeAttempt::Work::missing(PlayerId optimizer, const std::string& why) const {
  return Error{"the state of the " + title_of(*spec_, optimizer) + " did not come" + why};
}

Result<StartPoint> NodeAttempt::Work::own_state(PlayerId optimizer) const {
  auto state = store_ ? store_->find(optimizer.index, start_.step) : std::nullopt;
  if (!state) return missing(optimizer, ": it is not kept here any more");
  return StartPoint{state->step, std::move(state->weights), std::move(state->moments),
                    state->loss_scale};
}

Result<StartPoint> NodeAttempt::Work::read_state(PlayerId optimizer,
                                                 WireMessage wire_message) const {
  const int giver = start_.states[static_cast<std::size_t>(optimizer.index)];
  auto state = to_snapshot(std::move(wire_message));
  if (state)
    if (auto good = check_state(*state, optimizer, giver); !good) state = good.error();
  if (!state) return missing(optimizer, ": " + name_of(giver) + ": " + state.error().text);
  return StartPoint{state->step, std::move(state->weights), std::move(state->moments),
                    state->loss_scale};
}

/// The tensors of a checkpoint, which the head sends, are the optimizer's own to check.
Status NodeAttempt::Work::check_state(const Snapshot& state, PlayerId optimizer, int from) const {
  if (state.optimizer != optimizer.index || state.step != start_.step)
    return Error{std::string(Snapshot::type) + ": found the state of optimizer " +
                 std::to_string(state.optimizer) + " after step " + std::to_string(state.step) +
                 ", wanted optimizer " + std::to_string(optimizer.index) + " after step " +
                 std::to_string(start_.step)};
  if (from == order_.prepare.placement.head()) return Done{};
  if (auto good = bounds_->tensors->check(state); !good)
    return Error{std::string(Snapshot::type) + ": " + good.error().text};
  return Done{};
}

/// Takes an optimizer's state from the messages of the process that gives it, if it has come.
std::optional<WireMessage> NodeAttempt::Work::take_state(PlayerId optimizer) {
  const int giver = start_.states[static_cast<std::size_t>(optimizer.index)];
  const std::lock_guard lock(gate_);
  const auto found = std::ranges::find_if(waiting_, [&](const Waiting& waiting) {
    return waiting.from == giver && waiting.to == optimizer &&
           waiting.wire_message.type == Snapshot::type;
  });
  if (found == waiting_.end()) return {};
  auto wire_message = std::move(found->wire_message);
  waiting_.erase(found);
  return wire_message;
}

}  // namespace troupe::actors
