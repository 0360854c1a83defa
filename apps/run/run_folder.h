#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/decide/run_machine.h"
#include "config/load.h"
#include "config/run_config.h"
#include "core/memory/tensor.h"
#include "core/result.h"
#include "core/value.h"
#include "storage/files/claim.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// How a submitted run begins: anew, from its newest checkpoint, or from its newest checkpoint and
/// at step 0 if its checkpoints are gone.
enum class RunStart { anew, resume, resume_or_scratch };

/// The folders that a run writes to: its own and that of its checkpoints, both locked against other
/// writers.
struct RunPlace {
  std::string folder;
  std::string moved;  // The new place of an earlier run's remains; empty if there were none.
  std::unique_ptr<storage::FileLock> lock;
  std::optional<storage::RootClaim> checkpoints;

  /// Releases the locks. Nothing of the run may be saved afterwards.
  void give_back();
};

/// Enters the folder of a run and makes it if needed. A new run moves the remains of an earlier run
/// of that name aside instead of overwriting them. If another process holds the folder, the error
/// names that process.
Result<RunPlace> enter_run_place(storage::Files& files, const storage::Claimant& claimant,
                                 const config::Loaded& loaded, RunStart start);

Value state_event(const config::RunConfig& config, const std::string& state,
                  const std::string& why);
/// Returns the event of a run's end, with the number of its skipped steps.
Value ended_event(const config::RunConfig& config, const std::string& state, const std::string& why,
                  std::int64_t skipped_steps);
Value warning_event(const config::RunConfig& config, const std::string& text);
/// Returns the event that tells what the run's machine decided.
Value decision_event(const config::RunConfig& config, const actors::decide::Answer& answer);

/// Writes weights to a file of their own, atomically.
Status export_weights(storage::Files& files, const std::string& path,
                      const std::vector<NamedTensor>& tensors);

}  // namespace troupe::apps
