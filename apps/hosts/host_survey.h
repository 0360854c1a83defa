#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/hosts/check.h"
#include "apps/hosts/host_checks.h"
#include "apps/hosts/hostfile.h"
#include "apps/hosts/remote_place.h"

namespace troupe::apps {

/// Receives each check as soon as it was made; `host` is empty for a check of several machines.
using OnCheck = std::function<void(const std::string& host, const Check& check)>;

/// Runs the doctor on all machines at once over ssh. Returns the reports of the machines that could
/// be reached.
std::vector<HostReport> survey_hosts(const std::vector<Host>& hosts, const RemotePlace& place,
                                     const OnCheck& on_check);

/// Measures the link between every two machines that have an address. A few pairs run at a time,
/// and no machine is in two of them.
std::vector<LinkFound> survey_links(const std::vector<HostReport>& reports,
                                    const RemotePlace& place);

}  // namespace troupe::apps
