#pragma once

#include <array>
#include <string_view>

namespace troupe::apps {

// The files of the page, as they are in this folder, and their SHA-256 in hexadecimal digits. A
// page that holds a file within itself allows it by that digest.

std::string_view page_html();
std::string_view page_html_sha256();
std::string_view page_css();
std::string_view page_css_sha256();
std::string_view texts_js();
std::string_view texts_js_sha256();
std::string_view charts_js();
std::string_view charts_js_sha256();
std::string_view timeline_js();
std::string_view timeline_js_sha256();
std::string_view page_js();
std::string_view page_js_sha256();

struct PageScript {
  std::string_view name, text, sha256;
};

/// The scripts, in the order in which a page runs them.
inline std::array<PageScript, 4> page_scripts() {
  return {{{"texts.js", texts_js(), texts_js_sha256()},
           {"charts.js", charts_js(), charts_js_sha256()},
           {"timeline.js", timeline_js(), timeline_js_sha256()},
           {"page.js", page_js(), page_js_sha256()}}};
}

}  // namespace troupe::apps
