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

/// A stage that a device holds, with its state between messages.
struct HeldStage {
  int number = 0;
  int holder = 0;  // Among all holders of the stage.
  models::Share share;
  std::shared_ptr<models::TrainingStage> stage;

  std::vector<std::string> borrowed;
  struct Lent {
    std::string name;
    int borrower = 0;
  };
  std::vector<Lent> lent;

  std::vector<Giving> givings;  // Destinations of its gradients.
  struct Part {
    models::Version version;
    WorkTime worked;
  };
  std::vector<std::optional<Part>> published;  // Indexed by section; not adopted yet.
  bool has_weights = false;
  std::optional<std::int64_t> version;  // The newest weights taken.
  int steps_given = 0;                  // In the current round.
  int steps_taken = 0;

  /// Checks that a section sends its part of the next weights once, and that the part has the
  /// version that is due.
  Status expects(const NewWeights& part) const;
  bool is_published() const { return missing_section() == static_cast<int>(published.size()); }
  /// Returns the first section whose new weights are missing.
  int missing_section() const;
  /// Returns when this device computed its part of the weights, or nothing if it has none.
  std::optional<WorkTime> worked_here() const;
  /// Removes all published parts, by section, to make room for the next ones.
  std::vector<models::Version> take_published();
};

/// Returns the stages that a device holds, in their order.
std::vector<HeldStage> stages_held(const RunSpec& spec, int replica, int device);

/// Returns the title of the first optimizer whose new weights of the stage are missing.
std::string missing_optimizer(const RunSpec& spec, const HeldStage& held);

}  // namespace troupe::actors
