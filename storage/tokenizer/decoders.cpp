#include <algorithm>
#include <utility>

#include "core/text.h"
#include "storage/tokenizer/byte_tokens.h"
#include "storage/tokenizer/fields.h"
#include "storage/tokenizer/metaspace.h"
#include "storage/tokenizer/steps.h"
#include "storage/tokenizer/words.h"
#include "storage/unicode/text_forms.h"

namespace troupe::storage {
namespace {

using Decoders = std::vector<Decoder>;
using TokenTexts = std::vector<std::string>;

void join_texts(TokenTexts& texts) {
  std::string whole;
  for (const auto& text : texts) whole += text;
  texts.assign(1, std::move(whole));
}

void to_bytes(TokenTexts& texts) {
  std::string bytes;
  for (auto& text : texts)
    // An added token is spelled as it is.
    if (from_printable(text, bytes)) text = bytes;
  join_texts(texts);
}

/// Replaces each run of byte tokens by its text. If that is no UTF-8, by a replacement character
/// for each byte.
void from_byte_tokens(TokenTexts& texts) {
  TokenTexts made;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (is_utf8(bytes)) {
      made.push_back(std::exchange(bytes, {}));
      return;
    }
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      made.emplace_back();
      append_utf8(made.back(), replacement_character);
    }
    bytes.clear();
  };
  for (auto& text : texts)
    if (const auto byte = byte_of_token(text)) {
      bytes += static_cast<char>(*byte);
    } else {
      flush();
      made.push_back(std::move(text));
    }
  flush();
  texts = std::move(made);
}

void strip(std::string& text, const std::string& content, std::int64_t start, std::int64_t stop) {
  std::string_view left = text;
  for (; start > 0 && left.starts_with(content); --start) left.remove_prefix(content.size());
  for (; stop > 0 && left.ends_with(content); --stop) left.remove_suffix(content.size());
  text = std::string(left);
}

/// Removes the blanks that splitting put before punctuation and the endings of English.
std::string cleaned(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> rules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [pattern, content] : rules) text = with_replaced(text, pattern, content);
  return text;
}

Result<Decoders> read_word_piece_decoder(Fields& fields) {
  const auto prefix = fields.text("prefix", "##");
  const bool cleanup = fields.boolean("cleanup", true);
  if (auto status = fields.finish(); !status) return status.error();
  return Decoders{{[prefix, cleanup](TokenTexts& texts) {
                     for (std::size_t i = 0; i < texts.size(); ++i) {
                       auto& text = texts[i];
                       if (i > 0)
                         text = text.starts_with(prefix) ? text.substr(prefix.size()) : " " + text;
                       if (cleanup) text = cleaned(std::move(text));
                     }
                   },
                   2}};
}

Result<Decoders> read_replacing_decoder(Fields& fields) {
  const auto content = fields.text("content");
  std::string pattern = " ";
  if (const auto* value = fields.find("pattern")) {
    Fields inner(*value, fields.place_of("pattern"));
    pattern = inner.text("String");
    if (pattern.empty()) inner.fail("String", "is empty; a text was wanted");
    if (auto status = inner.finish(); !status) return status.error();
  } else {
    fields.fail("pattern", "is missing; a map with String was wanted");
  }
  if (auto status = fields.finish(); !status) return status.error();
  const auto growth =
      std::max(1.0, static_cast<double>(content.size()) / static_cast<double>(pattern.size()));
  return Decoders{{[=](TokenTexts& texts) {
                     for (auto& text : texts) text = with_replaced(text, pattern, content);
                   },
                   growth}};
}

Result<Decoders> read_stripping(Fields& fields) {
  constexpr std::int64_t most = 1'000'000;
  const auto content = fields.text("content");
  if (content.empty() || first_character(content).bytes != content.size())
    fields.fail("content", "is \"" + content + "\"; one character was wanted");
  const auto start = fields.integer("start", 0, most);
  const auto stop = fields.integer("stop", 0, most);
  if (auto status = fields.finish(); !status) return status.error();
  return Decoders{{[=](TokenTexts& texts) {
    for (auto& text : texts) strip(text, content, start, stop);
  }}};
}

Result<Decoders> read_metaspaces(Fields& fields) {
  const auto read = Metaspace::read(fields);
  if (!read) return read.error();
  return Decoders{{[m = *read](TokenTexts& texts) {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const bool drops = i == 0 && m.prepend != Metaspace::Prepend::never;
      texts[i] = with_replaced(texts[i], m.replacement, drops ? "" : " ");
    }
  }}};
}

Result<Decoders> read_decoder(const Value& value, const std::string& place) {
  Fields fields(value, place);
  const auto type = fields.text("type");
  if (type == "Sequence") {
    Decoders steps;
    const auto* list = fields.list("decoders");
    if (auto status = fields.finish(); !status) return status.error();
    for (std::size_t i = 0; i < list->size(); ++i) {
      auto read =
          read_decoder((*list)[i], fields.place_of("decoders") + "[" + std::to_string(i) + "]");
      if (!read) return read.error();
      for (auto& step : *read) steps.push_back(std::move(step));
    }
    return steps;
  }
  if (type == "WordPiece") return read_word_piece_decoder(fields);
  if (type == "Replace") return read_replacing_decoder(fields);
  if (type == "Strip") return read_stripping(fields);
  if (type == "Metaspace") return read_metaspaces(fields);
  Decoders steps;
  if (type == "ByteLevel") {
    for (const auto* key : {"add_prefix_space", "trim_offsets", "use_regex"}) fields.ignore(key);
    steps.push_back({to_bytes});
  } else if (type == "ByteFallback") {
    steps.push_back({from_byte_tokens});
  } else if (type == "Fuse") {
    steps.push_back({join_texts});
  } else {
    fields.fail("type", "is \"" + type +
                            "\"; known are ByteFallback, ByteLevel, Fuse, Metaspace, Replace, "
                            "Sequence, Strip and WordPiece");
  }
  if (auto status = fields.finish(); !status) return status.error();
  return steps;
}

}  // namespace

Result<Decoders> read_decoders(const Value* value, const std::string& place) {
  if (!value)
    return Decoders{{[](TokenTexts& texts) {
                       for (std::size_t i = 1; i < texts.size(); ++i) texts[i].insert(0, " ");
                     },
                     2}};
  auto steps = read_decoder(*value, place);
  if (!steps) return steps.error();
  double growth = 1;
  for (const auto& step : *steps) growth *= step.growth;
  if (steps->size() > most_steps || growth > most_growth)
    return Error{place + ": has " + std::to_string(steps->size()) +
                 " steps that could make a text " + std::to_string(growth) +
                 " times as long; at most 32 steps and 256 times are taken"};
  return steps;
}

}  // namespace troupe::storage
