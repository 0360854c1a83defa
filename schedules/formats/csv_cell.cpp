#include "schedules/formats/csv_cell.h"

#include <algorithm>
#include <charconv>

#include "schedules/text.h"

namespace troupe::schedules {
namespace {

struct Word {
  std::string_view text;
  std::optional<Kind> kind;
  std::optional<TransferEnd> transfer;
};

constexpr Word words[] = {
    {"F", Kind::forward, {}},
    {"B", Kind::backward, {}},
    {"I", Kind::backward_input, {}},
    {"W", Kind::backward_weight, {}},
    {"UNSHARD", Kind::gather, {}},
    {"RESHARD", Kind::release, {}},
    {"REDUCE_GRAD", Kind::give, {}},
    {"SEND_F", {}, TransferEnd::send_activation},
    {"RECV_F", {}, TransferEnd::receive_activation},
    {"SEND_B", {}, TransferEnd::send_gradient},
    {"RECV_B", {}, TransferEnd::receive_gradient},
};

std::optional<int> take_number(std::string_view& text, int end_of_range) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number >= end_of_range) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

std::optional<CsvCell> parse_csv_cell(std::string_view text) {
  const auto stage = take_number(text, max_stages);
  const std::string_view letters = text.substr(0, text.find_first_of("0123456789"));
  const auto word = std::ranges::find(words, letters, &Word::text);
  if (!stage || word == std::end(words)) return std::nullopt;
  text.remove_prefix(letters.size());
  CsvCell cell{*stage, word->kind, word->transfer, 0};
  if (word->transfer || has_micro_batch(*word->kind)) {
    const auto m = take_number(text, max_micro_batches);
    if (!m) return std::nullopt;
    cell.micro_batch = *m;
  }
  if (!text.empty()) return std::nullopt;
  return cell;
}

std::string_view csv_word(Kind kind) {
  const auto word = std::ranges::find(words, std::optional(kind), &Word::kind);
  return word == std::end(words) ? std::string_view() : word->text;
}

}  // namespace troupe::schedules
