#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "actors/round.h"
#include "core/result.h"
#include "models/train/stage.h"

namespace troupe::actors {

/// What rounds are made of.
struct RoundShape {
  std::string schedule = "1f1b";                    // A name.
  std::optional<schedules::Schedule> written = {};  // One that the user wrote, in place of it.
  int stages = 1;
  int chunks = 1;
  int replicas = 1;
  int micro_batches = 1;               // In a step, of all replicas together.
  int groups = 1;                      // Reduction groups of a step.
  std::vector<bool> recompute = {};    // By stage; empty: none.
  int flush_steps = 64;                // Between the drains of an asynchronous schedule,
  std::int64_t synchronous_steps = 0;  // but for its first steps, after each of which it drains.
};

/// The rounds of a run, from its first step to its last.
class Rounds {
 public:
  /// Errors say which numbers do not go together.
  static Result<Rounds> make(const RoundShape& shape);

  /// What is played from a step on where so many are left. Asynchronous rounds end at multiples of
  /// their length, wherever a run was begun again.
  RoundPtr at(std::int64_t first_step, std::int64_t steps_left) const;

  /// Of one step.
  const RoundPtr& of_one_step() const { return one_; }
  bool asynchronous() const { return asynchronous_; }
  std::vector<models::Keep> keep() const;
  /// By stage: the most steps between the two passes of a micro-batch.
  std::vector<int> delays() const;

 private:
  Result<RoundPtr> of(int steps) const;

  RoundShape shape_;
  bool asynchronous_ = false;
  int steps_ = 1;  // Of a whole round.
  RoundPtr one_;
  RoundPtr whole_;
};

}  // namespace troupe::actors
