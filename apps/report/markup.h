#pragma once

#include <string>
#include <string_view>

namespace troupe::apps {

/// The text as it may stand in HTML and XML, between tags and in quoted attributes alike. Whatever
/// is no UTF-8, or no character of XML, becomes a replacement character.
std::string escaped(std::string_view text);

/// The same, cut after so many characters, with an ellipsis where something was cut off.
std::string escaped(std::string_view text, std::size_t most);

/// A picture as an address that an <img> shows without asking anybody.
std::string data_address(std::string_view svg);

}  // namespace troupe::apps
