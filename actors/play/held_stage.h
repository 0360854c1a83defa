#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/exchange.h"
#include "actors/messages.h"
#include "actors/run_spec.h"
#include "models/stale/training_stage.h"

namespace troupe::actors {

/// A stage that a device holds, and what goes to and fro around its steps.
struct HeldStage {
  int number = 0;
  int holder = 0;  // Among all that hold it.
  models::Share share;
  std::shared_ptr<models::TrainingStage> stage;

  std::vector<std::string> borrowed;
  struct Lent {
    std::string name;
    int borrower = 0;
  };
  std::vector<Lent> lent;

  std::vector<Giving> givings;  // Where its gradients go.
  struct Part {
    models::Version version;
    WorkTime worked;
  };
  std::vector<std::optional<Part>> published;  // By section: and not yet adopted.
  bool has_weights = false;
  int steps_given = 0;  // Of the round that is being played.
  int steps_taken = 0;

  bool is_published() const { return missing_section() == static_cast<int>(published.size()); }
  /// The first one whose part has not come.
  int missing_section() const;
  /// When the device itself made its part of what is published; nothing where it has none.
  std::optional<WorkTime> worked_here() const;
  /// All parts, by section; from then on the next ones may come.
  std::vector<models::Version> take_published();
};

/// In the order of the stages.
std::vector<HeldStage> stages_held(const RunSpec& spec, int replica, int device);

/// For a person: the first optimizer whose part of the stage's next weights has not come.
std::string missing_optimizer(const RunSpec& spec, const HeldStage& held);

}  // namespace troupe::actors
