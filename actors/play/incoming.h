#pragma once

#include <string>
#include <utility>
#include <vector>

#include "actors/messages.h"
#include "actors/play/held_stage.h"
#include "actors/play/inbox.h"
#include "actors/run_spec.h"
#include "core/memory/device.h"
#include "schedules/schedule.h"

namespace troupe::actors {

/// What goes into a forward pass: taken by the stage actor, used by the job.
struct PassInput {
  Inbox::ParcelPtr input;
  Inbox::ParcelPtr targets;  // Of the last stage.
  std::vector<Inbox::ParcelPtr> borrowed;

  /// Inputs and targets took different ways here; from now on they are one. Throws where they are
  /// of other samples.
  void check_halves() const;
  std::vector<models::Loan> take_loans() const;
};

/// On the executor: who made it may have given it to its device, and no more.
void follow(Stream& stream, const Inbox::Parcel& parcel);
void follow(Stream& stream, const PassInput& in);

/// What the actions of a device wait for, and what they take once it has come.
class Incoming {
 public:
  explicit Incoming(RunSpecPtr spec) : spec_(std::move(spec)) {}

  Inbox& inbox() { return inbox_; }
  /// The most parcels that were ever there at once.
  std::size_t most() const { return inbox_.most(); }

  /// What an action of the round waits for, for a person; an empty text where it can go on.
  std::string missing(const Play& play, schedules::Action action, const HeldStage& held) const;

  // Of what is not missing.

  PassInput take_input(const Play& play, schedules::Action action, const HeldStage& held);
  /// At the last stage there is none, and none is needed: a header alone.
  Inbox::ParcelPtr take_gradient(const Play& play, schedules::Action action);

 private:
  RunSpecPtr spec_;
  Inbox inbox_;
};

}  // namespace troupe::actors
