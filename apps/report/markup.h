#pragma once

#include <string>
#include <string_view>

namespace troupe::apps {

/// A picture as an address that an <img> shows without asking anybody.
std::string data_address(std::string_view svg);

}  // namespace troupe::apps
