#pragma once

#include <string_view>

namespace troupe::apps {

/// The files of the head's page, as they are in this folder.
std::string_view page_html();
std::string_view page_css();
std::string_view page_js();

}  // namespace troupe::apps
