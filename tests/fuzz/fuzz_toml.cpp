#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "config/load.h"
#include "config/pages/render.h"
#include "config/toml/toml.h"

using namespace troupe;

/// Reads any text as a configuration: gives a printable error, or a configuration whose shown form
/// parses back.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto tree = config::parse_toml(text))
    for (const auto& entry : *tree->map()) {
      const auto again = config::parse_toml("x = " + config::to_toml(entry.value));
      if (!again) std::abort();
    }

  // A file that extends itself must give an ordinary error.
  const auto loaded =
      config::load({.path = "run.toml",
                    .settings = {text.substr(0, 64)},
                    .read = [&](const std::string&) -> Result<std::string> { return text; }});
  if (loaded ? config::show(*loaded, config::Show::origins).empty() : loaded.error().text.empty())
    std::abort();
  return 0;
}
