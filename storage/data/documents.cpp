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

Result<Value> parse_line(std::string_view line) {
  auto parsed = parse_json(line, {longest_line, 16});
  // Keep only the column: the parser saw this line as a text of its own.
  if (!parsed) return Error{parsed.error().text.substr(parsed.error().text.find(':') + 1)};
  return parsed;
}

void append(std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
}

/// Returns the tokens of the beginning of a document.
std::vector<std::int32_t> begun_tokens_of(std::string_view text, const Tokenizer* tokenizer) {
  if (!tokenizer) return tokens_of(text, tokenizer);
  auto tokens = tokenizer->around().before;
  append(tokens, tokenizer->encode(text));
  return tokens;
}

/// Ends a document: by what the tokenizer puts behind each document, or else by its end-of-text
/// token, or without a tokenizer by a line break.
void end_document(std::vector<std::int32_t>& tokens, const Tokenizer* tokenizer) {
  if (!tokenizer)
    tokens.push_back(line_break);
  else if (!tokenizer->around().behind.empty())
    append(tokens, tokenizer->around().behind);
  else if (const auto* end = tokenizer->end_of_text())
    tokens.push_back(end->id);
}

Result<std::vector<std::int32_t>> tokens_in(const Value::List& list) {
  std::vector<std::int32_t> tokens;
  tokens.reserve(list.size());
  for (const auto& item : list) {
    if (!item.integer() || *item.integer() < 0 || *item.integer() > INT32_MAX)
      return Error{std::to_string(item.position.column) +
                   ": is no token; an integer of at least 0 "
                   "and at most 2147483647 was wanted"};
    tokens.push_back(static_cast<std::int32_t>(*item.integer()));
  }
  return tokens;
}

/// The keys and the name of a line with two texts.
struct TwoTexts {
  LineKind kind;
  const char *first, *second, *name;
  const char *what, *all;  // In errors.
  bool first_ends;         // Whether the first text ends as a document does.

  /// Documents may have these keys, too.
  bool are_in(const Value& line) const {
    return line.find(first) && line.find(second) && !line.find("text") && !line.find("tokens");
  }
};

constexpr TwoTexts two_texts[] = {{LineKind::examples, "prompt", "answer", "example",
                                   "prompt with an answer", "prompts and answers", false},
                                  {LineKind::pairs, "source", "target", "pair",
                                   "source with a target", "sources and targets", true},
                                  {LineKind::sentences, "first", "second", "pair of sentences",
                                   "first text with a second", "first and second texts", true}};

/// Returns what a line with two texts is, or null if it has one. A prompt alone tells an example.
const TwoTexts* two_texts_in(const Value& line) {
  for (const auto& form : two_texts)
    if (form.are_in(line) || (form.kind == LineKind::examples && line.find(form.first)))
      return &form;
  return nullptr;
}

Result<std::vector<std::int32_t>> read_document(std::string_view line, const Tokenizer* tokenizer) {
  const auto document = parse_line(line);
  if (!document) return document.error();
  if (const auto* text = document->find("text"); text && text->text()) {
    auto tokens = begun_tokens_of(*text->text(), tokenizer);
    end_document(tokens, tokenizer);
    return tokens;
  }
  if (const auto* form = two_texts_in(*document))
    return Error{std::string("1: is a ") + form->what +
                 ", and a document was wanted here; a .jsonl file has lines of one kind, and of " +
                 form->all + " no shards are made: name the file itself in data.train"};
  const auto* list = document->find("tokens");
  if (!list || !list->list())
    return Error{"1: is no document; a map with \"text\", or with a list \"tokens\", was wanted"};
  return tokens_in(*list->list());
}

Result<Example> read_example(std::string_view line, LineKind kind, const Tokenizer* tokenizer) {
  const auto map = parse_line(line);
  if (!map) return map.error();
  const auto& form = *std::ranges::find(two_texts, kind, &TwoTexts::kind);
  const Value *first = map->find(form.first), *second = map->find(form.second);
  const auto is_good = [](const Value* part) { return part && (part->text() || part->list()); };
  if (!is_good(first) || !is_good(second))
    return Error{"1: is no " + std::string(form.name) + "; a map with \"" + form.first +
                 "\" and \"" + form.second + "\", each a text or a list of tokens, was wanted"};
  Example example;
  const auto read = [&](const Value& part, bool begins, bool ends, std::vector<std::int32_t>& to,
                        std::size_t& ending) -> Status {
    if (!part.text()) {
      auto tokens = tokens_in(*part.list());
      if (!tokens) return tokens.error();
      to = std::move(*tokens);
      return Done{};
    }
    to = begins ? begun_tokens_of(*part.text(), tokenizer) : tokens_of(*part.text(), tokenizer);
    const auto before = to.size();
    if (ends) end_document(to, tokenizer);
    ending = to.size() - before;
    return Done{};
  };
  if (auto good = read(*first, true, form.first_ends, example.prompt, example.prompt_ending); !good)
    return good.error();
  if (auto good = read(*second, false, true, example.answer, example.answer_ending); !good)
    return good.error();
  return example;
}

bool is_blank(std::string_view line) {
  return std::all_of(line.begin(), line.end(),
                     [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
}

/// Calls read(line), and then give() with its result, for each line that is not blank.
template <class Read, class Give>
Status for_each_line(const std::string& path, std::string_view contents, Read read,
                     const Give& give) {
  for (std::int64_t number = 1; !contents.empty(); ++number) {
    const auto end = std::min(contents.find('\n'), contents.size());
    const auto line = contents.substr(0, end);
    contents.remove_prefix(std::min(end + 1, contents.size()));
    if (is_blank(line)) continue;
    const auto place = path + ":" + std::to_string(number);
    auto found = read(line);
    if (!found) return Error{place + ":" + found.error().text};
    if (auto given = give(std::move(*found)); !given) return within(place, given.error());
  }
  return Done{};
}

}  // namespace

std::optional<std::int32_t> end_of_documents(const Tokenizer* tokenizer) {
  if (!tokenizer) return line_break;
  if (!tokenizer->around().behind.empty()) return tokenizer->around().behind.back();
  const auto* end = tokenizer->end_of_text();
  return end ? std::optional(end->id) : std::nullopt;
}

Status for_each_document(const std::string& path, std::string_view contents,
                         const Tokenizer* tokenizer,
                         const std::function<Status(std::vector<std::int32_t>)>& give) {
  if (!path.ends_with(".jsonl")) {
    auto tokens = begun_tokens_of(contents, tokenizer);
    if (tokenizer) append(tokens, tokenizer->around().behind);
    auto given = give(std::move(tokens));
    return given ? given : within(path, given.error());
  }
  return for_each_line(
      path, contents, [&](std::string_view line) { return read_document(line, tokenizer); }, give);
}

LineKind kind_of_lines(const std::string& path, std::string_view contents) {
  if (!path.ends_with(".jsonl")) return LineKind::documents;
  while (!contents.empty()) {
    const auto end = std::min(contents.find('\n'), contents.size());
    const auto line = contents.substr(0, end);
    contents.remove_prefix(std::min(end + 1, contents.size()));
    if (is_blank(line)) continue;
    const auto first = parse_line(line);
    const auto* form = first ? two_texts_in(*first) : nullptr;
    return form ? form->kind : LineKind::documents;
  }
  return LineKind::documents;
}

Status for_each_example(const std::string& path, std::string_view contents, LineKind kind,
                        const Tokenizer* tokenizer, const std::function<Status(Example)>& give) {
  return for_each_line(
      path, contents, [&](std::string_view line) { return read_example(line, kind, tokenizer); },
      give);
}

}  // namespace troupe::storage
