#include "actors/play/players.h"

#include <cassert>
#include <map>
#include <utility>

#include "actors/caf_shim.h"
#include "actors/checkpoints.h"
#include "actors/exchange.h"
#include "actors/play/loader_actor.h"
#include "actors/play/optimizer_actor.h"
#include "actors/play/stage_actor.h"

namespace troupe::actors {

std::string device_title(const RunSpec& spec, int replica, int device) {
  const std::string title = "device " + std::to_string(device);
  return spec.replicas() == 1 ? title : title + " of replica " + std::to_string(replica);
}

std::vector<PlayerId> players_of(const RunSpec& spec) {
  using Kind = PlayerId::Kind;
  std::vector<PlayerId> players;
  const int devices = spec.evaluation->devices();
  for (int replica = 0; replica < spec.replicas(); ++replica) {
    for (int device = 0; device < devices; ++device)
      players.push_back({Kind::stage, replica * devices + device});
    players.push_back({Kind::inputs, replica});
    players.push_back({Kind::targets, replica});
  }
  for (int optimizer = 0; optimizer < optimizers_of(spec); ++optimizer)
    players.push_back({Kind::optimizer, optimizer});
  return players;
}

namespace {

std::string optimizer_title(const RunSpec& spec, int optimizer) {
  const auto [stage, section] = place_of(spec, optimizer);
  const std::string title = "stage " + std::to_string(stage);
  const bool is_alone = optimizers_of(spec) == static_cast<int>(spec.stages.size());
  return is_alone ? "optimizer of " + title
                  : "optimizer of section " + std::to_string(section) + " of " + title;
}

}  // namespace

std::string title_of(const RunSpec& spec, PlayerId player) {
  const auto loader = [&](const std::string& title) {
    return spec.replicas() == 1 ? title : title + " of replica " + std::to_string(player.index);
  };
  const int devices = spec.evaluation->devices();
  switch (player.kind) {
    case PlayerId::Kind::stage:
      return device_title(spec, player.index / devices, player.index % devices);
    case PlayerId::Kind::optimizer:
      return optimizer_title(spec, player.index);
    case PlayerId::Kind::inputs:
      return loader("loader of inputs");
    case PlayerId::Kind::targets:
      return loader("loader of targets");
    case PlayerId::Kind::supervisor:
      return "supervisor";
    case PlayerId::Kind::keeper:
      return "keeper of node " + std::to_string(player.index);
  }
  return {};
}

caf::actor spawn_player(const caf_shim::Spawner& spawner, const RunSpecPtr& spec, PlayerId player,
                        StartPoint start) {
  const int devices = spec->evaluation->devices();
  switch (player.kind) {
    case PlayerId::Kind::stage:
      return spawn_stage_actor(spawner, spec, player.index / devices, player.index % devices);
    case PlayerId::Kind::optimizer:
      return spawn_optimizer_actor(spawner, spec, player.index, std::move(start));
    case PlayerId::Kind::inputs:
      return spawn_loader(spawner, spec, player.index, Half::inputs);
    case PlayerId::Kind::targets:
      return spawn_loader(spawner, spec, player.index, Half::targets);
    case PlayerId::Kind::supervisor:
    case PlayerId::Kind::keeper:
      break;
  }
  assert(false && "supervisors and keepers are no players of a run");
  return {};
}

Team team_of(const AttemptContext& attempt_context, int attempt,
             const std::function<caf::actor(PlayerId)>& of,
             const std::vector<std::vector<int>>& keepers,
             std::vector<std::shared_ptr<transport::Adder>> adders) {
  Team team;
  auto players = std::make_shared<Players>();
  players->attempt = attempt;
  players->supervisor = attempt_context.supervisor;
  players->ending = attempt_context.ending;
  players->adders = std::move(adders);
  const auto group = [&](PlayerId::Kind kind) -> std::vector<caf::actor>& {
    switch (kind) {
      case PlayerId::Kind::stage:
        return players->stages;
      case PlayerId::Kind::optimizer:
        return players->optimizers;
      case PlayerId::Kind::inputs:
        return players->inputs;
      default:
        return players->targets;
    }
  };
  for (const auto id : players_of(*attempt_context.spec)) {
    auto actor = of(id);
    group(id.kind).push_back(actor);
    team.all.push_back({id, std::move(actor), {.who = title_of(*attempt_context.spec, id)}});
  }
  std::map<int, caf::actor> by_process;
  for (const auto& of_one : keepers) {
    auto& group = players->keepers.emplace_back();
    for (const int process : of_one) {
      auto& keeper = by_process[process];
      if (!keeper) keeper = of({PlayerId::Kind::keeper, process});
      group.push_back(keeper);
    }
  }
  team.players = players;
  return team;
}

std::vector<std::int64_t> Origin::all_saved() const {
  auto all = older;
  if (saved > 0) all.push_back(saved);
  return all;
}

Team spawn_team(const caf_shim::Spawner& spawner, const AttemptContext& attempt_context,
                int attempt, const StartPoint& start) {
  auto team = team_of(attempt_context, attempt, [&](PlayerId id) {
    const bool is_optimizer = id.kind == PlayerId::Kind::optimizer;
    return spawn_player(
        spawner, attempt_context.spec, id,
        is_optimizer ? part_of(start, *attempt_context.spec, id.index) : StartPoint{});
  });
  for (const auto& player : team.all) caf_shim::post(player.actor, Meet{team.players});
  return team;
}

}  // namespace troupe::actors
