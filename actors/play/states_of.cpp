#include "actors/play/states_of.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "core/json.h"

namespace troupe::actors {
namespace {

constexpr auto skips_key = "skip_steps";

}  // namespace

StatesOf::StatesOf(Value configuration) {
  Value* train = configuration.find("train");
  if (train && train->map()) {
    const Value* steps = train->find(skips_key);
    if (steps && steps->list())
      for (const auto& step : *steps->list())
        left_out.push_back(step.integer() ? *step.integer() : 0);
    std::erase_if(*train->map(), [](const auto& entry) { return entry.key == skips_key; });
  }
  config = digest_of(to_json(configuration));
}

std::optional<std::int64_t> last_equal_step(const StatesOf& one, const StatesOf& other) {
  if (one.config != other.config) return {};
  std::vector<std::int64_t> differ;
  std::ranges::set_symmetric_difference(one.left_out, other.left_out, std::back_inserter(differ));
  return differ.empty() ? std::numeric_limits<std::int64_t>::max() : differ.front() - 1;
}

}  // namespace troupe::actors
