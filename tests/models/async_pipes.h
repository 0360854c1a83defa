#pragma once

#include <vector>

#include "scalar_pipeline.h"

/// Pipelines of scalars with late gradients, and the policies for them.
namespace troupe::models {

/// Returns one stage of this depth that does nothing but its optimizer's step.
ScalarRun of_kind(int depth, int micro_batches,
                  OptimizerConfig::Kind kind = OptimizerConfig::Kind::sgd);

/// Returns three stages with a curve and momentum, so that no terms cancel.
ScalarRun pipe(int micro_batches, int step_every);

StalenessOptions policy(StalenessOptions::Predict predict, StalenessOptions::LinearizeAt at,
                        StalenessOptions::GapPenalty gap);
/// Returns all combinations of prediction, place and penalty, plus policies with none of them.
std::vector<StalenessOptions> policies();

/// Compares traces bit for bit.
bool same(const ScalarTrace& a, const ScalarTrace& b);

}  // namespace troupe::models
