#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "config/load.h"
#include "core/json.h"

using namespace troupe;

/// Reads any text as JSON: gives an error, or a tree that is written as it was read and can be the
/// body of a message.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto tree = parse_json({reinterpret_cast<const char*>(data), size});
  if (!tree) return 0;
  const std::string written = to_json(*tree);
  const auto again = parse_json(written);
  if (!again || to_json(*again) != written) std::abort();

  const auto loaded = config::load_message(*tree, "run.submit");
  if (!loaded && loaded.error().text.empty()) std::abort();
  return 0;
}
