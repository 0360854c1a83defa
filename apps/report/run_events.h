#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/value.h"
#include "storage/files/files.h"

namespace troupe::apps {

struct StepTold {
  std::int64_t step = 0;
  // A value is absent if the event did not contain it.
  std::optional<double> loss, grad_norm, lr, rate, bubble, memory;
};

struct EvalTold {
  std::int64_t step = 0;
  double loss = 0;
};

/// A device or a link that was slow for a while.
struct StragglerTold {
  std::string node;
  std::int64_t device = 0;
  std::string cause;
  // A value is absent if the event did not contain it.
  std::optional<double> factor, share;
  std::optional<std::int64_t> since, until;  // Steps; `until` is absent if it was slow to the end.
};

/// The history of a run, read from its events. A run that was stopped and resumed is one history,
/// in which repeated steps count once.
struct RunEvents {
  std::string name;
  std::string state;  // The last reported state; empty: none.
  std::string why;
  int starts = 0;
  std::optional<double> began, ended;  // The times of the first and the last event, since 1970.
  std::vector<StepTold> steps;
  std::vector<EvalTold> evals;
  std::vector<std::string> checkpoints;  // The folders of the checkpoints.
  std::vector<std::string> warnings;
  std::vector<StragglerTold> stragglers;  // In the order in which they were named.
  bool is_torn = false;    // The last line is incomplete: the run was killed while it wrote it.
  int unreadable = 0;      // The number of lines that are no events.
  std::string first_flaw;  // The first unreadable line and its error.
};

/// Reads as much as it can from any text.
RunEvents parse_events(std::string_view text);

/// Returns the folder of a run that is named by its folder below runs/, or by the folder itself. If
/// there is neither, the error names the run that is probably meant.
Result<std::string> folder_of_run(storage::Files& files, const std::string& run);

}  // namespace troupe::apps
