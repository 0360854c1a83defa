#pragma once

#include <vector>

#include "schedules/schedule.h"

/// Each of these gives the order of the passes of one step; operators.h adds the rest. The shape
/// must be one that the registry accepts for the schedule: generate() in registry.h asks first.
namespace troupe::schedules {

/// One micro-batch at a time through the whole pipeline.
Schedule sequential(PipelineShape shape);

/// All forward passes, then all backward passes (Huang et al. 2019).
Schedule gpipe(PipelineShape shape);

/// A stage runs ahead by its distance to the last one, then alternates (Narayanan et al. 2019).
Schedule one_f_one_b(PipelineShape shape);

/// Runs ahead by twice that distance, which hides a hop in each direction.
Schedule one_f_one_b_eager(PipelineShape shape);

/// Several stages on a device in a loop, micro-batches in groups (Narayanan et al. 2021), for any
/// number of micro-batches.
Schedule interleaved(PipelineShape shape);

/// The same placement, but each stage takes all micro-batches at once (Lamy-Poirier 2023).
Schedule breadth_first(PipelineShape shape);

/// W waits until memory or time asks for it: idle time shrinks at the memory of 1f1b, or vanishes
/// at twice that (Qi et al. 2023).
Schedule zero_bubble_h1(PipelineShape shape);
Schedule zero_bubble_h2(PipelineShape shape);

/// Two chunks in a V and no idle time at the memory of 1f1b, if F, I and W take equally long.
Schedule zero_bubble_v(PipelineShape shape);

/// Two chunks in a V at half and at a third of the memory of 1f1b (Qi et al. 2024).
Schedule v_half(PipelineShape shape);
Schedule v_min(PipelineShape shape);

/// Pipelines from both ends whose passes overlap (DeepSeek 2024), and the same folded into a V.
Schedule dual_pipe(PipelineShape shape);
Schedule dual_pipe_v(PipelineShape shape);

/// Two pipelines in opposite directions fill each other's gaps (Li and Hoefler 2021).
Schedule chimera(PipelineShape shape);

/// Waves: a snake of 2w chunks per device (Liu et al. 2023).
Schedule hanayo(PipelineShape shape);

/// 1f1b whose stages take new weights after every backward pass (Narayanan et al. 2019), or after
/// as many as there are devices, which two versions of the weights suffice for (2021).
Schedule pipedream(PipelineShape shape);
Schedule pipedream_2bw(PipelineShape shape);

/// One stage on each device; stage s has at most `credits[s]` micro-batches in flight: so many
/// forward passes, then backward and forward in turn. Credits must be positive and must not grow
/// from stage to stage, or a stage waits for more than it will be sent.
Schedule with_credits(std::string name, int micro_batches, const std::vector<int>& credits);

/// The credits of 1f1b for a pipeline in which at most `cap` micro-batches may be in flight:
/// S, S-1, ..., 1, lowered by S - cap, but nowhere below 1.
std::vector<int> capped_credits(int stages, int cap);

}  // namespace troupe::schedules
