#include "schedules/formats/csv.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "schedules/formats/csv_cell.h"
#include "schedules/text.h"

namespace troupe::schedules {
namespace {

constexpr std::string_view overlap_mark = "OVERLAP_F_B";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\"";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

/// Returns the text before the next separator and removes both from `text`.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

Error at(std::size_t row, std::size_t cell, const std::string& text) {
  return {std::to_string(row + 1) + ':' + std::to_string(cell + 1) + ": " + text};
}

/// Returns the length of the shortest prefix that, repeated, gives the whole (Knuth, Morris, Pratt
/// 1977).
std::size_t shortest_period(const std::vector<std::uint16_t>& numbers) {
  std::vector<std::size_t> border(numbers.size(), 0);
  for (std::size_t k = 1, length = 0; k < numbers.size(); ++k) {
    while (length > 0 && numbers[k] != numbers[length]) length = border[length - 1];
    if (numbers[k] == numbers[length]) ++length;
    border[k] = length;
  }
  return numbers.size() - border.back();
}

class Reader {
 public:
  explicit Reader(std::string_view name) { schedule_.name = name; }

  Result<Schedule> read(std::string_view text) {
    if (read_rows(text) && match_transfers() && find_routes()) return std::move(schedule_);
    return error_;
  }

 private:
  /// One end of a transfer: its row and cell, and the number of actions before it in the row.
  struct End {
    std::size_t row, cell, position;
  };
  using Key = std::tuple<bool, int, int>;  // Activation or gradient, source stage, micro-batch.

  bool fail(Error error) {
    error_ = std::move(error);
    return false;
  }

  bool read_rows(std::string_view text) {
    while (!text.empty()) {
      std::string_view row = take_until(text, '\n');
      if (schedule_.lanes.size() == max_stages)
        return fail(at(max_stages, 0, "found more than " + std::to_string(max_stages) + " rows"));
      schedule_.lanes.emplace_back();
      for (cell_ = 0; !row.empty(); ++cell_)
        if (!read_cell(trimmed(take_until(row, ',')))) return false;
    }
    return !schedule_.lanes.empty() || fail(at(0, 0, "found no row, wanted one for each device"));
  }

  bool read_cell(std::string_view text) {
    if (text.empty()) return true;
    if (!text.starts_with('(')) return read_action(text);
    const std::size_t close = std::min(text.find(')'), text.size() - 1);
    if (text.substr(close + 1) != overlap_mark) return unknown(text);
    Lane& lane = schedule_.lanes.back();
    const std::size_t begin = lane.size();
    for (std::string_view members = text.substr(1, close - 1); !members.empty();)
      if (!read_action(trimmed(take_until(members, ';')))) return false;
    const bool passes = std::all_of(lane.begin() + begin, lane.end(),
                                    [](Action action) { return has_micro_batch(action.kind); });
    if (lane.size() < begin + 2 || !passes) return unknown(text);
    for (std::size_t k = begin; k + 1 < lane.size(); ++k) lane[k].flags |= Action::with_next;
    return true;
  }

  bool read_action(std::string_view text) {
    const auto cell = parse_csv_cell(text);
    if (!cell) return unknown(text);
    if (++words_ > max_actions)
      return fail(here("the table has more than " + std::to_string(max_actions) + " words"));
    if (cell->transfer) return note_transfer(*cell);
    schedule_.stages = std::max(schedule_.stages, cell->stage + 1);
    schedule_.micro_batches = std::max(schedule_.micro_batches, cell->micro_batch + 1);
    schedule_.lanes.back().push_back(action(*cell->kind, cell->stage, cell->micro_batch));
    return true;
  }

  Error here(const std::string& text) const { return at(schedule_.lanes.size() - 1, cell_, text); }

  bool unknown(std::string_view text) {
    return fail(here("found '" + std::string(text.substr(0, 40)) +
                     "', expected an action such as 0F1, 0B1, 0I1, 0W1, 0SEND_F1, 0RECV_B1, "
                     "0UNSHARD, 0RESHARD, 0REDUCE_GRAD or (0F1;1B0)OVERLAP_F_B"));
  }

  bool note_transfer(const CsvCell& cell) {
    const bool sends = *cell.transfer == TransferEnd::send_activation ||
                       *cell.transfer == TransferEnd::send_gradient;
    const bool activation = *cell.transfer == TransferEnd::send_activation ||
                            *cell.transfer == TransferEnd::receive_activation;
    const int source = sends ? cell.stage : cell.stage + (activation ? -1 : 1);
    const End end{schedule_.lanes.size() - 1, cell_, schedule_.lanes.back().size()};
    const bool is_new = (sends ? sends_ : receives_)
                            .try_emplace({activation, source, cell.micro_batch}, end)
                            .second;
    return is_new || fail(here("this transfer is listed twice"));
  }

  /// Checks that each sent tensor is computed before, received in another row and consumed after.
  bool match_transfers() {
    if (sends_.empty() && receives_.empty()) return true;
    std::map<Key, End> passes;  // Keyed by the tensor that the pass produces.
    for (std::size_t row = 0; row < schedule_.lanes.size(); ++row)
      for (std::size_t k = 0; k < schedule_.lanes[row].size(); ++k) {
        const Action action = schedule_.lanes[row][k];
        const bool activation = action.kind == Kind::forward;
        if (activation || gives_input_gradient(action.kind))
          passes[{activation, action.stage, action.micro_batch}] = {row, 0, k};
      }
    for (const auto& [key, end] : sends_) {
      const auto receive = receives_.find(key);
      const auto maker = passes.find(key);
      if (receive == receives_.end())
        return fail(at(end.row, end.cell, "no row receives what this sends"));
      if (receive->second.row == end.row)
        return fail(at(end.row, end.cell, "this row sends to itself"));
      if (maker == passes.end() || maker->second.row != end.row ||
          maker->second.position >= end.position)
        return fail(at(end.row, end.cell, "this sends what the row has not made before"));
    }
    for (const auto& [key, end] : receives_) {
      if (!sends_.contains(key))
        return fail(at(end.row, end.cell, "no row sends what this receives"));
      const auto [activation, source, m] = key;
      const auto user = passes.find({activation, source + (activation ? 1 : -1), m});
      if (user == passes.end() || user->second.row != end.row ||
          user->second.position < end.position)
        return fail(at(end.row, end.cell, "this receives what the row does not use after"));
    }
    return true;
  }

  /// Derives the route of each micro-batch from the rows of its F's.
  bool find_routes() {
    const std::size_t passes = std::size_t(schedule_.stages) * schedule_.micro_batches;
    if (passes == 0 || passes > words_)
      return fail(at(0, 0,
                     "found " + std::to_string(words_) + " actions for " +
                         std::to_string(schedule_.stages) + " stages and " +
                         std::to_string(schedule_.micro_batches) + " micro-batches"));
    constexpr std::uint16_t nowhere = 0xffff;
    std::vector<Route> taken(schedule_.micro_batches, Route(schedule_.stages, nowhere));
    for (std::size_t row = 0; row < schedule_.lanes.size(); ++row)
      for (const Action action : schedule_.lanes[row])
        if (action.kind == Kind::forward)
          taken[action.micro_batch][action.stage] = static_cast<std::uint16_t>(row);
    std::map<Route, std::uint16_t> known;
    schedule_.route_of.clear();
    for (std::size_t m = 0; m < taken.size(); ++m) {
      const auto missing = std::ranges::find(taken[m], nowhere);
      if (missing != taken[m].end())
        return fail(
            at(0, 0,
               "no row has " + to_string(forward(static_cast<int>(missing - taken[m].begin()),
                                                 static_cast<int>(m)))));
      const auto [entry, is_new] =
          known.try_emplace(taken[m], static_cast<std::uint16_t>(schedule_.routes.size()));
      if (is_new) schedule_.routes.push_back(taken[m]);
      if (schedule_.routes.size() > max_stages)
        return fail(
            at(0, 0, "the micro-batches take more than " + std::to_string(max_stages) + " routes"));
      schedule_.route_of.push_back(entry->second);
    }
    schedule_.route_of.resize(shortest_period(schedule_.route_of));
    return true;
  }

  Schedule schedule_;
  std::size_t cell_ = 0;
  std::size_t words_ = 0;
  std::map<Key, End> sends_;
  std::map<Key, End> receives_;
  Error error_;
};

}  // namespace

Result<Schedule> parse_csv(std::string_view text, std::string_view name) {
  if (!is_schedule_name(name))
    return Error{"a schedule's name is one word of at most 100 printable characters"};
  return Reader(name).read(text);
}

Result<std::string> to_csv(const Schedule& schedule) {
  std::string text;
  for (int d = 0; d < schedule.devices(); ++d) {
    const char* separator = "";
    bool grouped = false;
    for (const Action action : schedule.lanes[d]) {
      if (action.kind == Kind::update) continue;
      const std::string_view word = csv_word(action.kind);
      if (word.empty() || (action.flags & ~Action::with_next))
        return Error{"device " + std::to_string(d) + ": torch's tables have no word for " +
                     to_string(action)};
      const bool goes_on = action.flags & Action::with_next;
      text += grouped ? ";" : separator;
      if (goes_on && !grouped) text += '(';
      text += std::to_string(action.stage);
      text += word;
      if (has_micro_batch(action.kind)) text += std::to_string(action.micro_batch);
      if (grouped && !goes_on) text.append(")").append(overlap_mark);
      grouped = goes_on;
      separator = ",";
    }
    text += '\n';
  }
  return text;
}

}  // namespace troupe::schedules
