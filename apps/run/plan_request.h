#pragma once

#include <string>
#include <vector>

#include "apps/run/run_setup.h"
#include "config/run_config.h"
#include "schedules/plan/plan.h"

namespace troupe::apps {

/// Whether its schedule is: then the cuts of its stages are part of its numbers.
bool is_asynchronous(const config::RunConfig& config);

/// Devices that the pipelines of a configuration ask for; where it leaves the stages open, one a
/// replica, and where it leaves the replicas open, those of one.
int devices_wanted(const config::RunConfig& config);

/// What shall be planned for a run. Times are those of a device of this profile, bytes those that
/// this program holds.
Result<schedules::PlanRequest> plan_request(const config::RunConfig& config, const RunSetup& setup,
                                            schedules::Cluster cluster,
                                            const schedules::DeviceProfile& profile);

/// Whether what this machine has bounds what a plan may use, or the memory of others does, which is
/// not known here.
enum class MemoryOf { this_machine, elsewhere };

/// What each GPU of this machine has left that the configuration computes on; none where the cores
/// do.
Result<std::vector<schedules::Bytes>> gpus_for(const config::RunConfig& config);

/// The same for middling devices: a cut that hangs neither on where it is made nor on what is
/// measured.
Result<schedules::PlanRequest> nominal_request(const config::RunConfig& config,
                                               const RunSetup& setup, MemoryOf memory);

}  // namespace troupe::apps
