#include "actors/decide/improvement.h"

#include <algorithm>
#include <cstdio>

namespace troupe::actors {
namespace {

std::string brief(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", number);
  return text;
}

}  // namespace

std::optional<Stopped> stops_early(std::span<const storage::EvaluatedStep> evaluations,
                                   const EarlyStop& rule) {
  if (rule.after == 0 || evaluations.empty()) return {};
  auto improved = evaluations.front();
  std::int64_t since = 0;
  for (const auto& evaluated : evaluations.subspan(1)) {
    ++since;
    if (evaluated.loss < improved.loss && evaluated.loss <= improved.loss - rule.least) {
      improved = evaluated;
      since = 0;
    }
  }
  if (since < rule.after) return {};
  const auto best = *std::ranges::min_element(evaluations, {}, &storage::EvaluatedStep::loss);
  std::string why = "stopped early: no improvement of the validation loss";
  if (rule.least > 0) why += " by " + brief(rule.least);
  why += " in " + std::to_string(since) + (since == 1 ? " evaluation" : " evaluations") +
         "; the best was " + brief(best.loss) + " after step " + std::to_string(best.step);
  return Stopped{best, std::move(why)};
}

bool newest_is_among_best(std::span<const storage::EvaluatedStep> evaluations, int most) {
  if (evaluations.empty()) return false;
  const double loss = evaluations.back().loss;
  const auto better =
      std::ranges::count_if(evaluations.first(evaluations.size() - 1),
                            [loss](const auto& evaluated) { return evaluated.loss <= loss; });
  return better < most;
}

}  // namespace troupe::actors
