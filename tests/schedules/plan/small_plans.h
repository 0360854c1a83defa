#pragma once

#include "schedules/plan/plan.h"

/// Requests that are small enough to be planned by hand.
namespace troupe::schedules::testing {

UnitCost block(int number);

/// Returns nodes with one device each.
Cluster nodes(int count, Bytes memory);

/// Returns a request of four blocks on two devices with four micro-batches per step.
PlanRequest two_stages();

/// Plans a request, which must be possible.
Plan planned(const PlanRequest& request);

}  // namespace troupe::schedules::testing
