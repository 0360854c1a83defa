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

/// Where the results of a device's passes go: to a later pass of the same device, to another
/// device, or to the supervisor. A stage actor asks before a pass is posted; what it is given is
/// called by the job, on the executor, once the result is there.
class Outgoing {
 public:
  /// `inbox` is that of the device.
  Outgoing(RunSpecPtr spec, int replica, int device, Inbox& inbox)
      : spec_(std::move(spec)), replica_(replica), device_(device), inbox_(inbox) {}

  /// With whom it plays, before anything is asked.
  void meet(CastPtr cast) { cast_ = std::move(cast); }

  using Send = std::function<void(const Header&, Tensor)>;
  /// The output, to the next stage. Null for the last one.
  Send output(const Play& play, schedules::Action action);
  /// The gradient of the input, to the stage before. Null for the first one.
  Send gradient(const Play& play, schedules::Action action);

  struct Lend {
    std::string name;
    std::function<void(const Header&, models::Loan)> send;
  };
  /// What other stages borrow of this one for their passes of the same micro-batch.
  std::vector<Lend> loans(const Play& play, schedules::Action action, const HeldStage& held);

  using TellLoss = std::function<void(const Header&, double mean)>;
  /// The loss of a micro-batch, to the supervisor. `step` is of the run.
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
  CastPtr cast_;
};

}  // namespace troupe::actors
