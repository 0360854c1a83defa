#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "actors/round.h"
#include "core/result.h"
#include "models/train/stage.h"

namespace troupe::actors {

/// The parameters of a run's rounds.
struct RoundShape {
  std::string schedule = "1f1b";                    // The schedule's name.
  std::optional<schedules::Schedule> written = {};  // The user's own schedule, if any.
  int stages = 1;
  int chunks = 1;
  int replicas = 1;
  int micro_batches = 1;               // Per step, over all replicas.
  int groups = 1;                      // Reduction groups per step.
  std::vector<bool> recompute = {};    // Indexed by stage; empty: none.
  int flush_steps = 64;                // Steps between drains of an asynchronous schedule.
  std::int64_t synchronous_steps = 0;  // First steps, each followed by a drain.
};

/// The rounds of a run, from its first step to its last.
class Rounds {
 public:
  /// The error names the numbers that do not fit together.
  static Result<Rounds> make(const RoundShape& shape);

  /// Returns the next round, at most `steps_left` steps long. Asynchronous rounds end at multiples
  /// of their length, wherever the run was resumed.
  RoundPtr at(std::int64_t first_step, std::int64_t steps_left) const;

  /// Returns a round of one step.
  const RoundPtr& of_one_step() const { return one_; }
  bool asynchronous() const { return asynchronous_; }
  /// Returns how many steps a full round has. Runs evaluate and save between rounds.
  int steps() const { return steps_; }
  std::vector<models::Keep> keep() const;
  /// Returns, by stage, the most steps between the two passes of a micro-batch.
  std::vector<int> delays() const;

 private:
  Result<RoundPtr> of(int steps) const;

  RoundShape shape_;
  bool asynchronous_ = false;
  int steps_ = 1;  // Steps of a full round.
  RoundPtr one_;
  RoundPtr whole_;
};

}  // namespace troupe::actors
