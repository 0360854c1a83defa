#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/hosts/check.h"
#include "apps/hosts/host_checks.h"
#include "apps/hosts/hostfile.h"
#include "apps/hosts/remote_place.h"

namespace troupe::apps {

/// Hears of a check as soon as it was made; `host` is empty for one of several machines.
using OnCheck = std::function<void(const std::string& host, const Check& check)>;

/// Runs the doctor on all machines at once, over ssh, and gives the reports of those that could be
/// reached.
std::vector<HostReport> survey_hosts(const std::vector<Host>& hosts, const RemotePlace& place,
                                     const OnCheck& on_check);

/// Measures between every two machines that have an address: a few pairs at a time, and nobody in
/// two of them.
std::vector<LinkFound> survey_links(const std::vector<HostReport>& reports,
                                    const RemotePlace& place);

}  // namespace troupe::apps
