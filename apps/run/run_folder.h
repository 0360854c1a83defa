#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/load.h"
#include "config/run_config.h"
#include "core/memory/tensor.h"
#include "core/result.h"
#include "core/value.h"
#include "storage/files/claim.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// How a run that was given begins: anew, from its newest checkpoint, or from its newest checkpoint
/// and at step 0 if what it saved is gone.
enum class RunStart { anew, resume, resume_or_scratch };

/// Where a run writes: its folder and that of its checkpoints, both locked against other writers.
struct RunPlace {
  std::string folder;
  std::string moved;  // Where what an earlier run of that name left was moved to; else empty.
  std::unique_ptr<storage::FileLock> lock;
  std::optional<storage::RootClaim> checkpoints;

  /// Lets the next writer in. Nothing of the run may be saved after this.
  void give_back();
};

/// Enters the folder of a run, which is made if it is missing. For a start anew, what an earlier
/// run of that name left is moved aside, not overwritten. A folder that another process holds is an
/// error that says which process.
Result<RunPlace> enter_run_place(storage::Files& files, const config::Loaded& loaded,
                                 RunStart start);

Value state_event(const config::RunConfig& config, const std::string& state,
                  const std::string& why);
/// The same of a run's end, and how many of its steps were skipped.
Value ended_event(const config::RunConfig& config, const std::string& state, const std::string& why,
                  std::int64_t skipped_steps);
Value warning_event(const config::RunConfig& config, const std::string& text);

/// Weights as a file of their own, whole or not at all.
Status export_weights(storage::Files& files, const std::string& path,
                      const std::vector<NamedTensor>& tensors);

}  // namespace troupe::apps
