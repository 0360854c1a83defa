#include "storage/data/documents.h"

#include <algorithm>

#include "core/json.h"

namespace troupe::storage {
namespace {

constexpr std::size_t longest_line = std::size_t{256} << 20;
/// The byte that ends a document if bytes are tokens.
constexpr std::int32_t line_break = '\n';

std::vector<std::int32_t> tokens_of(std::string_view text, const Tokenizer* tokenizer) {
  if (tokenizer) return tokenizer->encode(text);
  std::vector<std::int32_t> tokens;
  tokens.reserve(text.size());
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

Result<std::vector<std::int32_t>> read_line(std::string_view line, const Tokenizer* tokenizer) {
  const auto document = parse_json(line, {longest_line, 16});
  // Keep only the column: the parser saw this line as a text of its own.
  if (!document) return Error{document.error().text.substr(document.error().text.find(':') + 1)};
  if (const auto* text = document->find("text"); text && text->text()) {
    auto tokens = tokens_of(*text->text(), tokenizer);
    if (!tokenizer)
      tokens.push_back(line_break);
    else if (const auto* end = tokenizer->end_of_text())
      tokens.push_back(end->id);
    return tokens;
  }
  const auto* list = document->find("tokens");
  if (!list || !list->list())
    return Error{"1: is no document; a map with \"text\", or with a list \"tokens\", was wanted"};
  std::vector<std::int32_t> tokens;
  tokens.reserve(list->list()->size());
  for (const auto& item : *list->list()) {
    if (!item.integer() || *item.integer() < 0 || *item.integer() > INT32_MAX)
      return Error{std::to_string(item.position.column) +
                   ": is no token; an integer of at least 0 "
                   "and at most 2147483647 was wanted"};
    tokens.push_back(static_cast<std::int32_t>(*item.integer()));
  }
  return tokens;
}

bool is_blank(std::string_view line) {
  return std::all_of(line.begin(), line.end(),
                     [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
}

}  // namespace

Status for_each_document(const std::string& path, std::string_view contents,
                         const Tokenizer* tokenizer,
                         const std::function<Status(std::vector<std::int32_t>)>& give) {
  if (!path.ends_with(".jsonl")) {
    auto given = give(tokens_of(contents, tokenizer));
    return given ? given : within(path, given.error());
  }
  for (std::int64_t number = 1; !contents.empty(); ++number) {
    const auto end = std::min(contents.find('\n'), contents.size());
    const auto line = contents.substr(0, end);
    contents.remove_prefix(std::min(end + 1, contents.size()));
    if (is_blank(line)) continue;
    const auto place = path + ":" + std::to_string(number);
    auto tokens = read_line(line, tokenizer);
    if (!tokens) return Error{place + ":" + tokens.error().text};
    if (auto given = give(std::move(*tokens)); !given) return within(place, given.error());
  }
  return Done{};
}

}  // namespace troupe::storage
