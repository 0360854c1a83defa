#pragma once

#include <vector>

#include "schedules/schedule.h"

/// The generators. Each returns the order of the passes of one step; operators.h adds the rest. The
/// shape must be valid for the schedule: generate() in registry.h checks it first.
namespace troupe::schedules {

/// Runs one micro-batch at a time through the whole pipeline.
Schedule sequential(PipelineShape shape);

/// Runs all forward passes, then all backward passes (Huang et al. 2019).
Schedule gpipe(PipelineShape shape);

/// Lets a stage run ahead by its distance to the last, then alternate (Narayanan et al. 2019).
Schedule one_f_one_b(PipelineShape shape);

/// Lets each stage run ahead by twice that distance, which hides a hop in each direction.
Schedule one_f_one_b_eager(PipelineShape shape);

/// Places several stages on a device in a loop and runs micro-batches in groups (Narayanan et al.
/// 2021). Works for any number of micro-batches.
Schedule interleaved(PipelineShape shape);

/// Places stages like interleaved(); a stage runs all micro-batches at once (Lamy-Poirier 2023).
Schedule breadth_first(PipelineShape shape);

/// Delay W until memory or time requires it. H1 has less idle time at the memory of 1f1b; H2 has
/// none at twice that memory (Qi et al. 2023).
Schedule zero_bubble_h1(PipelineShape shape);
Schedule zero_bubble_h2(PipelineShape shape);

/// Places two chunks in a V: no idle time at the memory of 1f1b if F, I and W take equally long.
Schedule zero_bubble_v(PipelineShape shape);

/// Place two chunks in a V at a half and a third of the memory of 1f1b (Qi et al. 2024).
Schedule v_half(PipelineShape shape);
Schedule v_min(PipelineShape shape);

/// Run pipelines from both ends whose passes overlap (DeepSeek 2024); the second folds them to a V.
Schedule dual_pipe(PipelineShape shape);
Schedule dual_pipe_v(PipelineShape shape);

/// Runs two pipelines in opposite directions that fill each other's gaps (Li and Hoefler 2021).
Schedule chimera(PipelineShape shape);

/// Runs waves through a snake of 2w chunks per device (Liu et al. 2023).
Schedule hanayo(PipelineShape shape);

/// Run 1f1b with weight updates after every backward pass (Narayanan et al. 2019), or after as many
/// backward passes as there are devices, which needs two weight versions (2021).
Schedule pipedream(PipelineShape shape);
Schedule pipedream_2bw(PipelineShape shape);

/// Builds a pipeline with one stage per device and at most `credits[s]` micro-batches in flight in
/// stage s: that many forward passes, then backward and forward in turn. Credits must be positive
/// and must not grow from stage to stage, or a stage waits forever.
Schedule with_credits(std::string name, int micro_batches, const std::vector<int>& credits);

/// Returns the credits of 1f1b with at most `cap` micro-batches in flight: S, S-1, ..., 1, each
/// lowered by S - cap but not below 1.
std::vector<int> capped_credits(int stages, int cap);

}  // namespace troupe::schedules
