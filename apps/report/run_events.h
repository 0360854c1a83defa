#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/value.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// What a stage of an asynchronous run had of stale weights in one step.
struct StageLateness {
  std::vector<double> delays;  // Micro-batches by the steps that their gradients came late.
  double gap = 0;
  double prediction_error = 0;
  double penalty_mean = 0;
};

struct StepTold {
  std::int64_t step = 0;
  // What the event did not say is absent.
  std::optional<double> loss, grad_norm, lr, rate, bubble, memory;
  std::map<int, StageLateness> late;  // By stage.
};

struct EvalTold {
  std::int64_t step = 0;
  double loss = 0;
};

/// What a run's events tell. A run that was stopped and went on is one story: what it did again
/// counts once.
struct RunEvents {
  std::string name;
  std::string state;  // The last that was told; empty: none.
  std::string why;
  int starts = 0;
  std::vector<StepTold> steps;
  std::vector<EvalTold> evals;
  std::vector<std::string> checkpoints;  // Their folders.
  std::vector<std::string> warnings;
  bool is_torn = false;    // The last line has no end: the run was killed as it wrote it.
  int unreadable = 0;      // Lines that are no events.
  std::string first_flaw;  // The first of them, and what is wrong.
};

/// Any text gives what can be read of it.
RunEvents parse_events(std::string_view text);

/// A run is named as its folder below runs/ is, or by the folder itself.
std::string folder_of_run(storage::Files& files, const std::string& run);

/// What the newest checkpoint that can still be read says of the run's configuration; null if
/// there is none.
Value recipe_of(storage::Files& files, const RunEvents& run);

}  // namespace troupe::apps
