#pragma once

#include <string>
#include <string_view>

namespace troupe::apps {

/// Escapes text for HTML and XML, between tags and in quoted attributes. Invalid UTF-8, and
/// characters that XML forbids, become replacement characters.
std::string escaped(std::string_view text);

/// Escapes the first `most` characters, followed by an ellipsis if some were cut off.
std::string escaped(std::string_view text, std::size_t most);

/// Returns a data: address with the picture, for an <img>.
std::string data_address(std::string_view svg);

}  // namespace troupe::apps
