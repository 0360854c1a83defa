#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages.h"
#include "actors/play/held_stage.h"
#include "actors/play/inbox.h"
#include "actors/round.h"
#include "actors/run_spec.h"
#include "schedules/schedule.h"

namespace troupe::actors {

/// Destinations of a device's results: a later pass of the same device, another device, or the
/// supervisor. The stage actor asks for one before it posts a pass; the job calls it on the
/// executor with the result.
class Outgoing {
 public:
  /// `inbox` is the device's own.
  Outgoing(RunSpecPtr spec, int replica, int device, Inbox& inbox)
      : spec_(std::move(spec)), replica_(replica), device_(device), inbox_(inbox) {}

  /// Sets the peers; call it first.
  void meet(PlayersPtr players) { players_ = std::move(players); }

  using Send = std::function<void(const Header&, models::Bundle)>;
  /// Returns the destination of the output: the next stage. Null for the last stage.
  Send output(const Play& play, schedules::Action action);
  /// Returns the destination of the input's gradient: the previous stage. Null for the first stage.
  Send gradient(const Play& play, schedules::Action action);

  struct Lend {
    std::string name;
    std::function<void(const Header&, models::Loan)> send;
  };
  /// Returns what other stages borrow from this one for their passes of the same micro-batch.
  std::vector<Lend> loans(const Play& play, schedules::Action action, const HeldStage& held);

  using TellLoss = std::function<void(const Header&, double mean)>;
  /// Returns the destination of a micro-batch's loss: the supervisor. `step` is the run's.
  TellLoss loss(const Play& play, std::int64_t step, MicroBatchPlace place) const;

 private:
  Send to_stage(Inbox::What what, int stage, const Play& play, schedules::Action action);
  template <class Message>
  Send send(int device, int stage, const Play& play) const;
  bool can_follow(int device, const Play& play) const;
  const caf::actor& peer(int device, const Play& play) const;

  RunSpecPtr spec_;
  int replica_;
  int device_;
  Inbox& inbox_;
  PlayersPtr players_;
};

}  // namespace troupe::actors
