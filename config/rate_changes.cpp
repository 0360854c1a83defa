#include "config/rate_changes.h"

#include <charconv>
#include <cmath>

#include "core/json.h"

namespace troupe::config {
namespace {

using RateChange = models::LearningRate::Change;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Parses a number. Returns false unless the text consists only of the number.
template <class Number>
bool read(std::string_view text, Number& into) {
  text = trimmed(text);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<std::vector<RateChange>> parse_rate_changes(std::string_view text) {
  constexpr std::string_view word = " from ";
  std::vector<RateChange> changes;
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find(',', at), text.size());
    const auto piece = trimmed(text.substr(at, end - at));
    at = end + 1;
    const auto middle = piece.find(word);
    RateChange change;
    if (middle == piece.npos || !read(piece.substr(0, middle), change.lr) ||
        !read(piece.substr(middle + word.size()), change.from) || change.from < 0 ||
        !std::isfinite(change.lr) || change.lr < 0)
      return Error{"found '" + std::string(piece) +
                   "', wanted a learning rate and the steps before it: \"1e-3 from 120\""};
    if (!changes.empty() && changes.back().from >= change.from)
      return Error{"found '" + std::string(piece) + "' behind one from step " +
                   std::to_string(changes.back().from) + "; put them in the order of their steps"};
    changes.push_back(change);
  }
  return changes;
}

std::string to_text(std::span<const RateChange> changes) {
  std::string text;
  for (const auto& [from, lr] : changes)
    text += (text.empty() ? "" : ", ") + shortest(lr) + " from " + std::to_string(from);
  return text;
}

}  // namespace troupe::config
