#pragma once

#include <deque>
#include <optional>
#include <string>

#include "actors/caf_shim.h"
#include "actors/decide/run_machine.h"
#include "actors/lead/player_host.h"

namespace troupe::actors {

/// Plays a run in this process. The run's machine decides as for nodes: this process is the one
/// node, which is never lost, and no decision outlives it. It answers at once, on the supervisor's
/// thread.
class LocalPlayerHost : public PlayerHost {
 public:
  Team begin(const caf_shim::Spawner& spawner, const AttemptContext& attempt_context, int attempt,
             Origin origin) override;
  void failed(std::optional<PlayerId> player, const std::string& why) override;
  void refuse(PlayerId player, const std::string& why) override;
  void tell(decide::Event event) override;

 protected:
  /// Spawns the players, which start from this state, or from what the team says.
  virtual Team spawn(const caf_shim::Spawner& spawner, const AttemptContext& attempt_context,
                     int attempt, const StartPoint& start);

 private:
  void take(decide::Event event);
  void on(const decide::MakePlan& order);
  void on(const decide::Prepare& order);
  void on(const decide::Load& order);
  void on(const decide::Begin& order);
  void on(const decide::EndAttempt&) {}  // The supervisor ends its players before it goes on.
  void on(const decide::HoldRounds& order) { caf_shim::post(supervisor_, order); }
  void on(const decide::PlayOn& order) { caf_shim::post(supervisor_, order); }
  void on(const decide::Collect& order) { caf_shim::post(supervisor_, order); }
  void on(const decide::ApplyChanges& order) { caf_shim::post(supervisor_, order); }
  void on(const decide::SkipStep& order) { caf_shim::post(supervisor_, order); }
  void on(const decide::Warn& order);
  void on(const decide::End& order) { caf_shim::post(supervisor_, order); }
  void on(const decide::SetTimer&) {}  // Nothing is waited for.

  caf::actor_system* system_ = nullptr;
  caf::weak_actor_ptr supervisor_;
  decide::Limits limits_;
  decide::State state_;
  std::deque<decide::Event> events_;

  // Belong to the attempt that begins.
  int number_ = 0;
  Origin origin_;
  std::optional<StartPoint> start_;
  bool has_begun_ = false;
};

}  // namespace troupe::actors
