#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "core/result.h"
#include "core/tensor.h"
#include "core/value.h"
#include "storage/files.h"

namespace troupe::apps {

/// How a run that was given begins: anew, from its newest checkpoint, or from its newest checkpoint
/// and at step 0 if what it saved is gone.
enum class RunStart { anew, resume, resume_or_scratch };

/// The folder of a run's events, made where it is missing. For a fresh start, what an earlier run
/// of that name left is moved aside, not overwritten: `moved` says where to.
Result<std::string> run_folder(const config::RunConfig& config, bool resume, std::string& moved);

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
