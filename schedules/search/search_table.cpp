#include <algorithm>
#include <cmath>
#include <vector>

#include "core/json.h"
#include "schedules/search/search.h"

namespace troupe::schedules {
namespace {

using Row = std::vector<std::string>;

std::string rounded(double number) { return shortest(std::round(number * 1000) / 1000); }

Row row_of(const Candidate& candidate) {
  return {candidate.name, std::to_string(candidate.chunks), rounded(candidate.makespan),
          rounded(candidate.period), rounded(candidate.largest_peak)};
}

/// Aligns names left and numbers right.
std::string aligned(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (std::size_t column = 0; column < row.size(); ++column)
      widths[column] = std::max(widths[column], row[column].size());
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      const std::string blanks(widths[column] - row[column].size(), ' ');
      text += column == 0 ? row[0] + blanks : "  " + blanks + row[column];
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

}  // namespace

std::string to_table(const SearchResult& result) {
  std::vector<Row> rows = {{"schedule", "chunks", "makespan", "period", "peak"}};
  bool named_is_ranked = false;
  for (const auto& candidate : result.ranking) {
    rows.push_back(row_of(candidate));
    named_is_ranked |= candidate.name == result.best_named.name;
  }
  if (!named_is_ranked && !result.best_named.name.empty())
    rows.push_back(row_of(result.best_named));
  rows.push_back(
      {"lower bound", "", rounded(result.bound.makespan), rounded(result.bound.period), ""});
  return aligned(rows) + std::to_string(result.evaluations) +
         " schedules timed; the search ended because " + result.why_stopped + '\n';
}

}  // namespace troupe::schedules
