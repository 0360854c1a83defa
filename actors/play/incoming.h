#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages.h"
#include "actors/play/held_stage.h"
#include "actors/play/inbox.h"
#include "actors/run_spec.h"
#include "actors/tensor_bounds.h"
#include "core/memory/device.h"
#include "schedules/schedule.h"

namespace troupe::actors {

/// The inputs of a forward pass. The stage actor takes them, and its job uses them.
struct PassInput {
  Inbox::ParcelPtr input;
  Inbox::ParcelPtr targets;  // Set for the last stage.
  std::vector<Inbox::ParcelPtr> borrowed;

  int stage = 0;
  std::shared_ptr<const BatchForms> forms;  // The tensor forms of the round's samples.

  /// Throws if a tensor does not have the form of this round's samples, or if inputs and targets,
  /// which come from different loaders, belong to different samples.
  void check() const;
  Tensor take_targets() const;
  std::vector<models::Loan> take_loans() const;

 private:
  void check_halves() const;
};

/// Makes the executor's device wait for data that another device may still compute.
void follow(Stream& stream, const Inbox::Parcel& parcel);
void follow(Stream& stream, const PassInput& in);

/// Finds out what the actions of a device wait for, and takes it once it has arrived.
class Incoming {
 public:
  explicit Incoming(RunSpecPtr spec)
      : spec_(std::move(spec)),
        of_training_(BatchForms::of(*spec_, spec_->batches)),
        of_evaluation_(BatchForms::of(*spec_, spec_->validation)) {}

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
  std::shared_ptr<const BatchForms> of_training_, of_evaluation_;
  Inbox inbox_;
};

}  // namespace troupe::actors
