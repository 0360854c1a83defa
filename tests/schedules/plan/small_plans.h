#pragma once

#include "schedules/plan/plan.h"

/// Requests that are small enough to be planned by hand.
namespace troupe::schedules::testing {

UnitCost block(int number);

/// Each with one device.
Cluster nodes(int count, Bytes memory);

/// Four blocks on two devices, four micro-batches a step.
PlanRequest two_stages();

/// Of a request that can be met.
Plan planned(const PlanRequest& request);

}  // namespace troupe::schedules::testing
