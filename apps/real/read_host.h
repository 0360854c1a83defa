#pragma once

#include "apps/host_facts.h"

namespace troupe::apps {

/// Reads the facts of this machine and this process.
HostFacts read_host();

}  // namespace troupe::apps
