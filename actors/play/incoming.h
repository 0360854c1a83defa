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

/// The inputs of a forward pass. The stage actor takes them, and its job uses them.
struct PassInput {
  Inbox::ParcelPtr input;
  Inbox::ParcelPtr targets;  // Set for the last stage.
  std::vector<Inbox::ParcelPtr> borrowed;

  /// Checks that inputs and targets, which come from different loaders, belong to the same samples.
  /// Throws if they do not.
  void check_halves() const;
  std::vector<models::Loan> take_loans() const;
};

/// Makes the executor's device wait for data that another device may still compute.
void follow(Stream& stream, const Inbox::Parcel& parcel);
void follow(Stream& stream, const PassInput& in);

/// Finds out what the actions of a device wait for, and takes it once it has arrived.
class Incoming {
 public:
  explicit Incoming(RunSpecPtr spec) : spec_(std::move(spec)) {}

  Inbox& inbox() { return inbox_; }
  /// Returns the most parcels that were in the inbox at once.
  std::size_t most() const { return inbox_.most(); }

  /// Returns what an action waits for, as a text, or an empty text if it can run.
  std::string missing(const Play& play, schedules::Action action, const HeldStage& held) const;

  // The functions below require that nothing is missing.

  PassInput take_input(const Play& play, schedules::Action action, const HeldStage& held);
  /// For the last stage, which needs no gradient, the parcel has only a header.
  Inbox::ParcelPtr take_gradient(const Play& play, schedules::Action action);

 private:
  RunSpecPtr spec_;
  Inbox inbox_;
};

}  // namespace troupe::actors
