#include "actors/nodes/may.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string_view>

#include "actors/exchange.h"

namespace troupe::actors {
namespace {

using Who = PlayerId::Kind;

// Far beyond any run's needs, and far below what could overflow a sum or product.
constexpr std::int64_t most_steps = std::int64_t{1} << 40;
constexpr std::int64_t most_micro_batches = std::int64_t{1} << 24;
constexpr std::int64_t most_mail = 1 << 20;
constexpr std::int64_t most_targets = std::int64_t{1} << 40;
constexpr std::chrono::hours longest_copy{24};
constexpr std::chrono::hours longest_round{24 * 30};

/// Returns whether a span is ordered, and short enough that sums of spans fit their type.
bool can_be(const WorkTime& time) {
  const auto start = time.start.time_since_epoch(), end = time.end.time_since_epoch();
  return start.count() >= 0 && end >= start && end - start <= longest_round;
}

/// The examination of one message; it keeps the first error.
class Examination {
 public:
  Examination(const Sender& from, std::string_view type) : from_(from), type_(type) {}

  Examination& within(const char* what, std::int64_t found, std::int64_t least, std::int64_t most) {
    if (found < least || found > most)
      complain("found " + std::string(what) + " " + std::to_string(found) + ", wanted " +
               std::to_string(least) + " to " + std::to_string(most));
    return *this;
  }
  Examination& index(const char* what, std::int64_t found, int count) {
    return within(what, found, 0, std::int64_t{count} - 1);
  }
  Examination& step(std::int64_t found) { return within("step", found, 0, most_steps); }
  Examination& header(const Header& header) {
    step(header.first_step)
        .within("micro-batch", header.m, 0, most_micro_batches)
        .within("targets that count", header.counted, 0, most_targets);
    return that(std::isfinite(header.gap_factor) && header.gap_factor >= 1,
                "found a gap factor that is not finite, or below 1");
  }
  Examination& worked(const WorkTime& time) {
    return that(can_be(time), "found times that cannot be");
  }
  Examination& that(bool is_so, const std::string& complaint) {
    if (!is_so) complain(complaint);
    return *this;
  }

  Examination& to(Who kind) {
    return that(from_.to.kind == kind, "found it addressed to a player that does not take it")
        .that(has_player(from_.placement, from_.to),
              "found it addressed to a player that the run does not have");
  }
  Examination& by_head() {
    return that(from_.process == from_.placement.head(),
                "found it from process " + std::to_string(from_.process) +
                    ", but only the head gives this order");
  }
  /// Requires that the sender has this player. Check the index's bounds first.
  Examination& by(Who kind, std::int64_t index) {
    if (!outcome_) return *this;
    const PlayerId player{kind, static_cast<int>(index)};
    if (!has_player(from_.placement, player))
      return that(false, "found it from a player that the run does not have");
    const int owner = from_.placement.process_of(player);
    return that(owner == from_.process, "found it from process " + std::to_string(from_.process) +
                                            ", but the player it speaks for is in process " +
                                            std::to_string(owner));
  }
  Examination& by_device(int replica, int device) {
    index("replica", replica, bounds().replicas).index("device", device, bounds().devices);
    return by(Who::stage, std::int64_t{replica} * bounds().devices + device);
  }
  Examination& by_holder(int stage, int holder) {
    index("stage", stage, bounds().stages);
    if (!outcome_) return *this;
    const auto& places = bounds().holders[static_cast<std::size_t>(stage)];
    index("holder", holder, static_cast<int>(places.size()));
    return outcome_ ? by(Who::stage, places[static_cast<std::size_t>(holder)]) : *this;
  }
  /// The sender has a device that holds this stage in the replica of the receiver.
  Examination& by_neighbour(int stage) {
    if (!outcome_) return *this;
    const auto& places = bounds().holders[static_cast<std::size_t>(stage)];
    const bool has_one = std::ranges::any_of(places, [&](int place) {
      return place / bounds().devices == replica_of_receiver() &&
             from_.placement.process_of({Who::stage, place}) == from_.process;
    });
    return that(has_one, "found it from process " + std::to_string(from_.process) +
                             ", which has no device with stage " + std::to_string(stage) +
                             " in replica " + std::to_string(replica_of_receiver()));
  }
  Examination& by_loader(Who kind) { return by(kind, replica_of_receiver()); }
  /// The receiver holds this stage.
  Examination& for_holder(int stage) {
    index("stage", stage, bounds().stages);
    if (!outcome_) return *this;
    const auto& places = bounds().holders[static_cast<std::size_t>(stage)];
    return that(std::ranges::count(places, from_.to.index) > 0,
                "found it for device " + std::to_string(from_.to.index) +
                    ", which does not hold stage " + std::to_string(stage));
  }
  /// Everything before was good, and this is, too.
  template <class Check>
  Examination& agrees(Check check) {
    if (!outcome_) return *this;
    const Status checked = check(*bounds().tensors);
    return that(checked.ok(), checked ? "" : checked.error().text);
  }
  Examination& by_optimizer(int optimizer) {
    return index("optimizer", optimizer, bounds().optimizers).by(Who::optimizer, optimizer);
  }

  Status outcome() const { return outcome_; }

 private:
  const RunBounds& bounds() const { return from_.bounds; }
  int replica_of_receiver() const { return from_.to.index / bounds().devices; }
  void complain(const std::string& what) {
    if (outcome_) outcome_ = Error{std::string(type_) + ": " + what};
  }

  const Sender& from_;
  const std::string_view type_;
  Status outcome_ = Done{};
};

template <class Message>
Examination examine(const Sender& from, const Message&) {
  return {from, Message::type};
}

bool is_good(const schedules::Action& action, const RunBounds& bounds) {
  return action.kind <= schedules::Kind::release && action.stage < bounds.stages &&
         action.micro_batch <= most_micro_batches;
}

bool are_good(const std::vector<DeviceSpan>& spans) {
  std::chrono::nanoseconds sum{};
  for (const auto& [action, time] : spans) {
    if (!can_be(time)) return false;
    sum += time.end - time.start;
    if (sum > longest_round) return false;
  }
  return true;
}

}  // namespace

RunBounds RunBounds::of(const RunSpec& spec) {
  const auto usual = spec.round(0, 1);
  RunBounds bounds;
  bounds.replicas = spec.replicas();
  bounds.devices = spec.evaluation->devices();
  bounds.stages = static_cast<int>(spec.stages.size());
  bounds.sections = static_cast<int>(spec.sections.front().size());
  bounds.optimizers = optimizers_of(spec);
  bounds.micro_batches = usual->micro_batches_in_step();
  bounds.evaluated = spec.evaluation->schedule.micro_batches;
  for (int stage = 0; stage < bounds.stages; ++stage) {
    auto& places = bounds.holders.emplace_back();
    for (const auto& holder : holders_of(*usual, stage))
      places.push_back(holder.replica * bounds.devices + holder.device);
  }
  bounds.tensors = std::make_shared<const TensorBounds>(spec);
  return bounds;
}

bool has_player(const Placement& placement, PlayerId player) {
  const auto among = [&](const std::vector<int>& processes) {
    return player.index >= 0 && static_cast<std::size_t>(player.index) < processes.size();
  };
  switch (player.kind) {
    case Who::stage:
      return among(placement.stages);
    case Who::optimizer:
      return among(placement.optimizers);
    case Who::inputs:
      return among(placement.inputs);
    case Who::targets:
      return among(placement.targets);
    case Who::supervisor:
      return player.index == 0;
    case Who::keeper:
      return 0 <= player.index && player.index < placement.head();
  }
  return false;
}

// Orders of the head to players.

Status may(const Sender& from, const Play& message) {
  const bool is_player =
      from.to.kind == Who::stage || from.to.kind == Who::inputs || from.to.kind == Who::targets;
  return examine(from, message)
      .by_head()
      .that(is_player, "found it addressed to a player that plays no rounds")
      .step(message.first_step)
      .outcome();
}

Status may(const Sender& from, const TakeSnapshot& message) {
  return examine(from, message).by_head().to(Who::optimizer).outcome();
}

Status may(const Sender& from, const KeepStep& message) {
  return examine(from, message)
      .by_head()
      .to(Who::optimizer)
      .step(message.step)
      .step(message.line)
      .outcome();
}

// Messages between players.

Status may(const Sender& from, const Activation& message) {
  auto examination = examine(from, message);
  examination.to(Who::stage).header(message.header).for_holder(message.stage);
  message.stage == 0 ? examination.by_loader(Who::inputs)
                     : examination.by_neighbour(message.stage - 1);
  return examination.agrees([&](const auto& tensors) { return tensors.check(message); }).outcome();
}

Status may(const Sender& from, const Targets& message) {
  return examine(from, message)
      .to(Who::stage)
      .header(message.header)
      .for_holder(from.bounds.stages - 1)
      .by_loader(Who::targets)
      .agrees([&](const auto& tensors) { return tensors.check(message); })
      .outcome();
}

Status may(const Sender& from, const Gradient& message) {
  return examine(from, message)
      .to(Who::stage)
      .header(message.header)
      .for_holder(message.stage)
      .index("stage before another one", message.stage, from.bounds.stages - 1)
      .by_neighbour(message.stage + 1)
      .agrees([&](const auto& tensors) { return tensors.check(message); })
      .outcome();
}

Status may(const Sender& from, const LoanFor& message) {
  const int owner = from.bounds.tensors->owner_of(message.loan.name);
  return examine(from, message)
      .to(Who::stage)
      .header(message.header)
      .for_holder(message.stage)
      .that(owner >= 0, "found a parameter that no stages share")
      .by_neighbour(owner)
      .agrees([&](const auto& tensors) { return tensors.check(message); })
      .outcome();
}

Status may(const Sender& from, const Taken& message) {
  const bool is_loader = from.to.kind == Who::inputs || from.to.kind == Who::targets;
  return examine(from, message)
      .that(is_loader, "found it addressed to a player that does not load")
      .by_device(from.to.index, message.device)
      .outcome();
}

Status may(const Sender& from, const StepGradients& message) {
  const auto& targets = message.gradients->targets;
  return examine(from, message)
      .to(Who::optimizer)
      .step(message.step)
      .within("targets", targets.all, 0, most_targets)
      .within("targets that count", targets.counted, 0, targets.all)
      .by_holder(message.stage, message.holder)
      .agrees([&](const auto& tensors) { return tensors.check(message, from.to.index); })
      .outcome();
}

Status may(const Sender& from, const Norms& message) {
  return examine(from, message)
      .to(Who::optimizer)
      .step(message.step)
      .by_optimizer(message.optimizer)
      .agrees([&](const auto& tensors) { return tensors.check(message, from.to.index); })
      .outcome();
}

Status may(const Sender& from, const NewWeights& message) {
  return examine(from, message)
      .to(Who::stage)
      .for_holder(message.stage)
      .index("section", message.section, from.bounds.sections)
      .by(Who::optimizer, std::int64_t{message.stage} * from.bounds.sections + message.section)
      .within("version", message.version.weights->version, 0, most_steps)
      .worked(message.worked)
      .agrees([&](const auto& tensors) { return tensors.check(message); })
      .outcome();
}

Status may(const Sender& from, const StateCopy& message) {
  return examine(from, message)
      .to(Who::keeper)
      .step(message.state.step)
      .step(message.line)
      .by_optimizer(message.state.optimizer)
      .agrees([&](const auto& tensors) { return tensors.check(message.state); })
      .outcome();
}

// Reports to the supervisor.

Status may(const Sender& from, const Divergence& message) {
  return examine(from, message)
      .to(Who::supervisor)
      .step(message.step)
      .by_optimizer(message.optimizer)
      .outcome();
}

Status may(const Sender& from, const StepDone& message) {
  const bool are_finite = std::isfinite(message.norm) && std::isfinite(message.loss_scale) &&
                          std::isfinite(message.penalised_norm.value_or(0));
  return examine(from, message)
      .to(Who::supervisor)
      .step(message.step)
      .by_optimizer(message.optimizer)
      .within("skipped steps", message.skipped_steps, 0, most_steps)
      .that(are_finite, "found a number that is not finite")
      .outcome();
}

Status may(const Sender& from, const LateGradients& message) {
  const auto& metrics = message.metrics;
  return examine(from, message)
      .to(Who::supervisor)
      .step(message.step)
      .within("number of delays", static_cast<std::int64_t>(metrics.delays.size()), 0,
              most_micro_batches)
      .by_holder(message.stage, 0)
      .outcome();
}

Status may(const Sender& from, const MicroBatchLoss& message) {
  const bool is_training = message.purpose == Round::Purpose::training;
  return examine(from, message)
      .to(Who::supervisor)
      .step(message.step)
      .index("micro-batch", message.index,
             is_training ? from.bounds.micro_batches : from.bounds.evaluated)
      .within("targets that count", message.counted, 0, most_targets)
      .by_device(message.replica, message.device)
      .outcome();
}

Status may(const Sender& from, const RoundPlayed& message) {
  const auto& spans = *message.spans;
  const bool are_known = std::ranges::all_of(
      spans, [&](const auto& span) { return is_good(span.action, from.bounds); });
  const auto& held_up = message.held_up;
  const bool are_in_lane =
      held_up.size() <= spans.size() && std::ranges::all_of(held_up, [&](int position) {
        return position >= 0 && static_cast<std::size_t>(position) < spans.size();
      });
  return examine(from, message)
      .to(Who::supervisor)
      .step(message.first_step)
      .by_device(message.replica, message.device)
      .within("most parcels", static_cast<std::int64_t>(message.most_parcels), 0, most_mail)
      .that(are_known, "found an action that the run does not have")
      .that(are_good(spans), "found times that cannot be")
      .that(are_in_lane, "found an action that was held up and is not in the lane")
      .outcome();
}

Status may(const Sender& from, const Pulse& message) {
  const bool is_player = message.who.kind != Who::supervisor && message.who.kind != Who::keeper;
  return examine(from, message)
      .to(Who::supervisor)
      .that(is_player, "found a pulse of somebody who has none")
      .by(message.who.kind, message.who.index)
      .outcome();
}

Status may(const Sender& from, const Snapshot& message) {
  return examine(from, message)
      .to(Who::supervisor)
      .step(message.step)
      .by_optimizer(message.optimizer)
      .agrees([&](const auto& tensors) { return tensors.check(message); })
      .outcome();
}

Status may(const Sender& from, const Kept& message) {
  return examine(from, message)
      .to(Who::supervisor)
      .step(message.step)
      .index("optimizer", message.optimizer, from.bounds.optimizers)
      .that(message.took.count() >= 0 && message.took <= longest_copy,
            "found a time that no copy takes")
      .outcome();
}

}  // namespace troupe::actors
