#pragma once

#include <vector>

#include "scalar_pipeline.h"

/// Pipelines of scalars whose gradients come late, and the ways to live with that.
namespace troupe::models {

/// One stage at this depth, and nothing but its optimizer's step.
ScalarRun of_kind(int depth, int micro_batches,
                  OptimizerConfig::Kind kind = OptimizerConfig::Kind::sgd);

/// A curve, three stages, momentum: nothing cancels.
ScalarRun pipe(int micro_batches, int step_every);

StalenessOptions policy(StalenessOptions::Predict predict, StalenessOptions::LinearizeAt at,
                        StalenessOptions::GapPenalty gap);
/// Every prediction at every place with every penalty, and what goes with neither.
std::vector<StalenessOptions> policies();

/// To the bit.
bool same(const ScalarTrace& a, const ScalarTrace& b);

}  // namespace troupe::models
