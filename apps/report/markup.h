#pragma once

#include <string>
#include <string_view>

namespace troupe::apps {

/// Returns a data: address with the picture, for an <img>.
std::string data_address(std::string_view svg);

}  // namespace troupe::apps
