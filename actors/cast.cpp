#include "actors/cast.h"

#include "actors/loader_actor.h"
#include "actors/optimizer_actor.h"
#include "actors/rt.h"
#include "actors/stage_actor.h"

namespace troupe::actors {

std::string device_title(const RunSpec& spec, int replica, int device) {
  const std::string title = "device " + std::to_string(device);
  return spec.replicas() == 1 ? title : title + " of replica " + std::to_string(replica);
}

Company spawn_company(caf::actor_system& system, const Backstage& backstage, int attempt,
                      StartPoint start) {
  const auto& spec = backstage.spec;
  Company company;
  auto cast = std::make_shared<Cast>();
  cast->attempt = attempt;
  cast->supervisor = backstage.supervisor;
  cast->recorder = backstage.recorder;
  cast->ending = backstage.ending;
  const auto add = [&](std::vector<caf::actor>& group, caf::actor actor, std::string title) {
    group.push_back(actor);
    company.players.push_back({std::move(actor), {.who = std::move(title)}});
  };

  const auto of_replica = [&](int replica) {
    return spec->replicas() == 1 ? std::string() : " of replica " + std::to_string(replica);
  };
  for (int replica = 0; replica < spec->replicas(); ++replica) {
    for (int device = 0; device < spec->evaluation->devices(); ++device)
      add(cast->stages, spawn_stage_actor(system, spec, replica, device),
          device_title(*spec, replica, device));
    add(cast->inputs, spawn_loader(system, spec, replica, Half::inputs),
        "loader of inputs" + of_replica(replica));
    add(cast->targets, spawn_loader(system, spec, replica, Half::targets),
        "loader of targets" + of_replica(replica));
  }
  const auto from = std::make_shared<const StartPoint>(std::move(start));
  for (int stage = 0; stage < static_cast<int>(spec->stages.size()); ++stage)
    add(cast->optimizers, spawn_optimizer_actor(system, spec, stage, from),
        "optimizer of stage " + std::to_string(stage));

  company.cast = cast;
  for (const auto& player : company.players) rt::post(player.actor, Meet{company.cast});
  return company;
}

}  // namespace troupe::actors
