#pragma once

#include <string>

namespace troupe::transport {

/// Returns an id of this machine that differs even for machines booted from one image.
std::string this_machine_id();

}  // namespace troupe::transport
