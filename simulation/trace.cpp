#include "simulation/trace.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>
#include <set>

#include "core/json.h"
#include "core/units.h"

namespace troupe::simulation {
namespace {

using What = Change::What;

constexpr std::size_t most_changes = 1'000'000;
constexpr std::int64_t longest = std::int64_t{366} * 24 * 3600;  // Seconds.
constexpr std::int64_t most_nodes = 65'536;

std::string node_name(std::int64_t node) { return "node" + std::to_string(node); }

/// Returns a random time up to `most`, in the milliseconds of a trace.
Duration later(std::mt19937_64& random, Duration most) {
  using std::chrono::milliseconds;
  const auto count = std::chrono::duration_cast<milliseconds>(most).count();
  return milliseconds(std::uniform_int_distribution<std::int64_t>(0, count)(random));
}

Error wrong(int line, const std::string& what) { return {std::to_string(line) + ": " + what}; }

void sort(FailureTrace& trace) { std::ranges::stable_sort(trace, {}, &Change::at); }

}  // namespace

Result<FailureTrace> read_bamboo_trace(std::string_view text) {
  FailureTrace trace;
  std::set<std::string> there;
  for (int line = 1; !text.empty(); ++line) {
    const auto end = text.find('\n');
    auto row = text.substr(0, end);
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
    if (row.ends_with('\r')) row.remove_suffix(1);
    if (row.empty()) continue;
    const auto first = row.find(',');
    const auto second = first == row.npos ? row.npos : row.find(',', first + 1);
    if (second == row.npos) return wrong(line, "wanted milliseconds,add or remove,node");
    std::int64_t milliseconds = 0;
    const auto [stop, error] = std::from_chars(row.data(), row.data() + first, milliseconds);
    if (error != std::errc() || stop != row.data() + first || milliseconds < 0 ||
        milliseconds / 1000 > longest)
      return wrong(line,
                   "\"" + std::string(row.substr(0, first)) + "\" is no time in milliseconds");
    const auto what = row.substr(first + 1, second - first - 1);
    const std::string node(row.substr(second + 1));
    if (what != "add" && what != "remove")
      return wrong(line, "\"" + std::string(what) + "\": wanted add or remove");
    const bool comes = what == "add";
    if (comes ? !there.insert(node).second : there.erase(node) == 0)
      return wrong(line, node + (comes ? " is there already" : " is not there"));
    trace.push_back(
        {std::chrono::milliseconds(milliseconds), comes ? What::comes : What::goes, node});
    if (trace.size() > most_changes) return wrong(line, "more lines than can be");
  }
  if (trace.empty()) return Error{"1: it is empty"};
  sort(trace);
  return trace;
}

std::string write_bamboo_trace(const FailureTrace& trace) {
  std::string text;
  for (const auto& change : trace) {
    const auto at = std::chrono::duration_cast<std::chrono::milliseconds>(change.at).count();
    text += std::to_string(at) + (change.what == What::comes ? ",add," : ",remove,") + change.node +
            "\n";
  }
  return text;
}

Result<FailureTrace> read_skypilot_trace(std::string_view text) {
  const auto root = parse_json(text);
  if (!root) return root.error();
  const Value* metadata = root->find("metadata");
  const Value* gap = metadata ? metadata->find("gap_seconds") : nullptr;
  const Value* data = root->find("data");
  if (!gap || !gap->is_number() || !(gap->number() > 0) || !data || !data->list())
    return Error{"1:1: wanted metadata.gap_seconds, more than 0, and data, a list"};
  FailureTrace trace;
  std::int64_t there = 0;
  double seconds = 0;
  for (const auto& count : *data->list()) {
    if (!count.integer() || *count.integer() < 0 || *count.integer() > most_nodes ||
        seconds > static_cast<double>(longest))
      return Error{std::to_string(count.position.line) + ":" +
                   std::to_string(count.position.column) +
                   ": wanted how many instances there were"};
    const auto at = from_seconds(seconds);
    for (; there < *count.integer(); ++there) trace.push_back({at, What::comes, node_name(there)});
    for (; there > *count.integer(); --there)
      trace.push_back({at, What::goes, node_name(there - 1)});
    if (trace.size() > most_changes) return Error{"1:1: more changes than can be"};
    seconds += gap->number();
  }
  return trace;
}

Result<FailureTrace> read_trace(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && text[first] == '{' ? read_skypilot_trace(text)
                                                  : read_bamboo_trace(text);
}

FailureTrace spot_trace(const SpotStatistics& statistics, Duration length, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto chance = [&](double probability) {
    return std::uniform_real_distribution<double>(0, 1)(random) < probability;
  };
  FailureTrace trace;
  std::vector<std::int64_t> there, away;
  for (int node = 0; node < statistics.most; ++node)
    (node < statistics.live ? there : away).push_back(node);
  for (const auto node : there) trace.push_back({Duration(0), What::comes, node_name(node)});
  const double hours = std::chrono::duration<double, std::ratio<3600>>(statistics.tick).count();
  // The chance of one more loss at the same moment (a geometric distribution, cut off).
  const double another = 1 - statistics.moments / statistics.losses;
  const double back = statistics.losses * hours / std::max(1.0, statistics.most - statistics.live);
  for (Duration tick = statistics.tick; tick + statistics.tick < length; tick += statistics.tick) {
    const Duration at = tick + later(random, statistics.tick - Duration(1));
    std::vector<std::int64_t> gone;  // Nodes lost at this moment, which do not return at once.
    if (chance(statistics.moments * hours)) {
      int losses = 1;
      while (losses < statistics.most_at_once && chance(another)) ++losses;
      for (; losses > 0 && !there.empty(); --losses) {
        std::uniform_int_distribution<std::size_t> any(0, there.size() - 1);
        const auto which = there.begin() + static_cast<std::ptrdiff_t>(any(random));
        trace.push_back({at, What::goes, node_name(*which)});
        away.push_back(*which);
        gone.push_back(*which);
        there.erase(which);
      }
    }
    std::vector<std::int64_t> still_away;
    for (const auto node : away) {
      const bool went_now = std::ranges::count(gone, node) > 0;
      if (!went_now && chance(back)) {
        trace.push_back({at, What::comes, node_name(node)});
        there.push_back(node);
      } else {
        still_away.push_back(node);
      }
    }
    away = std::move(still_away);
  }
  return trace;
}

FailureTrace regular_trace(int nodes, Duration every, Duration back_after, Duration length,
                           std::uint64_t seed) {
  std::mt19937_64 random(seed);
  FailureTrace trace;
  for (int node = 0; node < nodes; ++node)
    trace.push_back({Duration(0), What::comes, node_name(node)});
  std::vector<Duration> away_until(static_cast<std::size_t>(nodes));
  for (Duration about = every; about < length; about += every) {
    // A random offset avoids synchrony with the run's own periods.
    const Duration at = about + later(random, every / 10);
    std::vector<int> there;
    for (int node = 0; node < nodes; ++node)
      if (away_until[static_cast<std::size_t>(node)] < at) there.push_back(node);
    if (there.empty()) continue;
    std::uniform_int_distribution<std::size_t> any(0, there.size() - 1);
    const int node = there[any(random)];
    away_until[static_cast<std::size_t>(node)] = at + back_after;
    trace.push_back({at, What::goes, node_name(node)});
    trace.push_back({at + back_after, What::comes, node_name(node)});
  }
  sort(trace);
  return trace;
}

}  // namespace troupe::simulation
