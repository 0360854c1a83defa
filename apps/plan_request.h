#pragma once

#include <string>

#include "apps/run_setup.h"
#include "config/run_config.h"
#include "schedules/plan.h"

namespace troupe::apps {

/// Devices that the pipelines of a configuration ask for; where it leaves the stages open, one a
/// replica.
int devices_wanted(const config::RunConfig& config);

/// What shall be planned for a run. Times are those of a device of this profile, bytes those that
/// this program holds.
Result<schedules::PlanRequest> plan_request(const config::RunConfig& config, const RunSetup& setup,
                                            schedules::Cluster cluster,
                                            const schedules::DeviceProfile& profile);

}  // namespace troupe::apps
