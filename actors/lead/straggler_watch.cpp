#include "actors/lead/straggler_watch.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <utility>

#include "actors/lead/player_host.h"
#include "actors/lead/step_event.h"
#include "actors/play/players.h"
#include "core/units.h"

namespace troupe::actors {
namespace {

constexpr std::ptrdiff_t most_waits = 128;  // An event has a limit of 64 KiB.
constexpr double whole_factor = 100;        // Two digits of a factor are believable,
constexpr double whole_share = 1000;        // and three of a share.

/// Returns an empty list if some nodes are unknown.
std::vector<std::string> find_nodes(const RunSpec& spec) {
  std::vector<std::string> nodes;
  for (int device = 0; spec.player_host && device < spec.devices(); ++device) {
    auto node = spec.player_host->node_of({PlayerId::Kind::stage, device});
    if (!node) return {};
    nodes.push_back(std::move(*node));
  }
  return nodes;
}

}  // namespace

std::optional<TimedRound> timed_round(const RoundUnderWay& round, std::chrono::nanoseconds took) {
  const auto& played = *round.play.round;
  TimedRound timed{.first_step = round.play.first_step,
                   .steps = played.steps,
                   .micro_batches_in_step = played.step_every,
                   .took = took,
                   .devices = {}};
  for (std::size_t place = 0; place < round.spans.size(); ++place) {
    const auto& lane = played.schedule.lanes[place % static_cast<std::size_t>(played.devices())];
    const auto& spans = round.spans[place];
    if (!spans || spans->size() != lane.size()) return {};
    auto& actions = timed.devices.emplace_back();
    for (std::size_t i = 0; i < lane.size(); ++i) {
      const auto& [action, time] = (*spans)[i];
      if (action.kind != lane[i].kind || action.stage != lane[i].stage ||
          action.micro_batch != lane[i].micro_batch)
        return {};
      actions.push_back({action, time.start.time_since_epoch(), time.end.time_since_epoch()});
    }
    for (const int position : round.held_up[place])
      actions.at(static_cast<std::size_t>(position)).is_held_up = true;
  }
  return timed;
}

std::vector<Value> StragglerWatch::attempt_begins(const RunSpec& spec) {
  std::vector<Value> events;
  for (auto straggler : stragglers_.all()) {
    straggler.now = Straggler::Now::unknown;
    events.push_back(event(spec, straggler));
  }
  nodes_.clear();
  stragglers_.attempt_begins({}, 1);
  waits_.attempt_begins({}, 1);
  return events;
}

void StragglerWatch::begun(const RunSpec& spec) {
  nodes_ = find_nodes(spec);
  took_ = {};
  stragglers_.attempt_begins(nodes_, spec.replicas());
  waits_.attempt_begins(nodes_, spec.replicas());
}

std::optional<TimedRound> StragglerWatch::times_of(const RoundUnderWay& round) {
  const auto took = std::exchange(took_, {});
  if (nodes_.empty() || nodes_.size() != round.spans.size()) return {};
  return timed_round(round, took);
}

Value::List StragglerWatch::waits(const TimedRound& round) {
  auto waits = waits_.add(round);
  if (waits.size() > most_waits) {
    std::ranges::nth_element(waits, waits.begin() + most_waits, std::ranges::greater(),
                             &LinkWait::time);
    waits.resize(most_waits);
  }
  Value::List all;
  for (const auto& wait : waits) {
    Value told;
    told.set("from", wait.from);
    told.set("to", wait.to);
    told.set("seconds", in_seconds(wait.time));
    all.push_back(std::move(told));
  }
  return all;
}

std::vector<Value> StragglerWatch::add(const RunSpec& spec, const TimedRound& round,
                                       std::int64_t step) {
  step_ = step;
  std::vector<Value> events;
  for (const auto& straggler : stragglers_.add(round)) events.push_back(event(spec, straggler));
  return events;
}

Value StragglerWatch::event(const RunSpec& spec, const Straggler& straggler) const {
  const auto& node = nodes_.at(straggler.device);
  Value told = run_event(spec, "node.straggler");
  told.set("node", node);
  told.set("device", static_cast<std::int64_t>(straggler.device));
  switch (straggler.cause) {
    case Straggler::Cause::computing:
      told.set("cause", "computing");
      break;
    case Straggler::Cause::link:
      told.set("cause", "link from " + nodes_.at(straggler.peer) + " to " + node);
      break;
    case Straggler::Cause::link_two_way:
      told.set("cause", "link between " + nodes_.at(straggler.peer) + " and " + node);
      break;
  }
  told.set("step", step_);
  told.set("since", straggler.since);
  switch (straggler.now) {
    case Straggler::Now::slow:
      told.set("factor", std::round(straggler.factor * whole_factor) / whole_factor);
      told.set("share", std::round(straggler.share * whole_share) / whole_share);
      told.set("than", straggler.than == Straggler::Than::before ? "before" : "others");
      return told;
    case Straggler::Now::usual:
      told.set("why", "it is as fast as usual again");
      break;
    case Straggler::Now::unknown:
      told.set("why", "it is not measured any more");
      break;
  }
  told.set("over", true);
  return told;
}

}  // namespace troupe::actors
