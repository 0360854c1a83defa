#include "actors/lead/local_player_host.h"

#include <caf/all.hpp>
#include <limits>
#include <utility>
#include <variant>

namespace troupe::actors {
namespace {

constexpr decide::Life here = 1;

decide::Limits limits_of(const RunSpec& spec) {
  decide::Limits limits;
  limits.failures = {spec.strikes, spec.strike_window};
  // Attempts come to nothing by failures only, which have limits of their own.
  limits.futile_attempts = limits.most_futile = std::numeric_limits<int>::max();
  // The store removes old checkpoints. One that is gone cannot be loaded, and the next one is
  // tried.
  limits.keep = std::numeric_limits<int>::max();
  return limits;
}

}  // namespace

Team LocalPlayerHost::begin(const caf_shim::Spawner& spawner, const AttemptContext& attempt_context,
                            int attempt, Origin origin) {
  system_ = spawner.system;
  supervisor_ = caf::actor_cast<caf::weak_actor_ptr>(attempt_context.supervisor);
  limits_ = limits_of(*attempt_context.spec);
  number_ = attempt;
  origin_ = std::move(origin);
  has_begun_ = false;
  if (state_.phase == decide::Phase::boot) {
    take(decide::JournalRead{});
    take(decide::SavesRead{origin_.all_saved(), origin_.committed});
    take(decide::NodeCame{here, "here"});
  } else {
    take(decide::AttemptEnded{state_.attempt});
  }
  origin_ = {};
  if (!has_begun_) return {};  // The run ends.
  const StartPoint start = *std::exchange(start_, {});
  auto team = spawn(spawner, attempt_context, attempt, start);
  if (!team.assembled) team.assembled = Assembled{.attempt = attempt, .step = start.step};
  return team;
}

Team LocalPlayerHost::spawn(const caf_shim::Spawner& spawner, const AttemptContext& attempt_context,
                            int attempt, const StartPoint& start) {
  return spawn_team(spawner, attempt_context, attempt, start);
}

void LocalPlayerHost::failed(std::optional<PlayerId>, const std::string& why) {
  take(decide::PlayerFailed{0, state_.attempt, why});
}

/// Players of this process send no invalid reports: the program itself is wrong.
void LocalPlayerHost::refuse(PlayerId, const std::string& why) { take(decide::RunFailed{why}); }

void LocalPlayerHost::tell(decide::Event event) {
  take(of_attempt(state_.attempt, std::move(event)));
}

/// Answers an event, and those that follow from it.
void LocalPlayerHost::take(decide::Event event) {
  events_.push_back(std::move(event));
  if (events_.size() > 1) return;
  for (; !events_.empty(); events_.pop_front()) {
    auto answer =
        decide::react(std::move(state_), events_.front(), system_->clock().now(), limits_);
    state_ = std::move(answer.state);
    for (const auto& order : answer.orders) std::visit([this](const auto& one) { on(one); }, order);
  }
}

void LocalPlayerHost::on(const decide::MakePlan& order) {
  take(decide::PlanMade{order.number,
                        decide::PlanChoice{order.nodes, "one process"},
                        {},
                        static_cast<std::uint64_t>(number_)});
}

void LocalPlayerHost::on(const decide::Prepare& order) {
  take(decide::Prepared{here, order.attempt});
}

void LocalPlayerHost::on(const decide::Load& order) {
  auto loaded = origin_.load(order.source.step);
  if (!loaded)
    return take(decide::LoadFailed{0, order.attempt, order.source.step,
                                   decide::LoadFailed::Cause::source, loaded.error().text});
  start_ = std::move(*loaded);
  take(decide::Loaded{order.attempt, order.source.step});
}

void LocalPlayerHost::on(const decide::Begin&) { has_begun_ = true; }

void LocalPlayerHost::on(const decide::Warn& order) {
  caf_shim::post(supervisor_, Remark{order.text});
}

}  // namespace troupe::actors
