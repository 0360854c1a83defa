#include "actors/cast.h"

#include "actors/loader_actor.h"
#include "actors/optimizer_actor.h"
#include "actors/rt.h"
#include "actors/stage_actor.h"

namespace troupe::actors {

Company spawn_company(caf::actor_system& system, const RunSpecPtr& spec, caf::actor supervisor,
                      caf::actor recorder, StartPoint start) {
  Company company;
  auto cast = std::make_shared<Cast>();
  cast->supervisor = std::move(supervisor);
  cast->recorder = std::move(recorder);
  const auto add = [&](std::vector<caf::actor>& group, caf::actor actor, std::string title) {
    group.push_back(actor);
    company.players.push_back({std::move(actor), std::move(title)});
  };

  const int devices = spec->evaluation->devices();
  const int replicas = spec->devices() / devices;
  const auto of_replica = [&](int replica) {
    return replicas == 1 ? std::string() : " of replica " + std::to_string(replica);
  };
  for (int replica = 0; replica < replicas; ++replica) {
    for (int device = 0; device < devices; ++device)
      add(cast->stages, spawn_stage_actor(system, spec, replica, device),
          "device " + std::to_string(device) + of_replica(replica));
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
