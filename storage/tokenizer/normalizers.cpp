#include <algorithm>

#include "storage/tokenizer/charsmap.h"
#include "storage/tokenizer/fields.h"
#include "storage/tokenizer/steps.h"
#include "storage/unicode/text_forms.h"

namespace troupe::storage {
namespace {

using Normalizers = std::vector<Normalizer>;

/// A character of at most two bytes may become one of three, or of several parts.
constexpr double growth_of_forms = 3;

constexpr std::size_t longest_prefix = 64;

Normalizer replacing(std::string pattern, std::string content) {
  const auto growth =
      std::max(1.0, static_cast<double>(content.size()) / static_cast<double>(pattern.size()));
  return {[pattern = std::move(pattern), content = std::move(content)](std::string_view text) {
            return with_replaced(text, pattern, content);
          },
          growth};
}

/// Replaces each run of two or more blanks.
std::string with_runs_replaced(std::string_view text, const std::string& content) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find_first_not_of(' ', at), text.size());
    if (end - at >= 2)
      out += content;
    else
      out += text.substr(at, end - at);
    at = end;
    const auto next = std::min(text.find(' ', at), text.size());
    out += text.substr(at, next - at);
    at = next;
  }
  return out;
}

Result<Normalizers> read_replacing_normalizer(Fields& fields) {
  const auto content = fields.text("content");
  Normalizer step;
  if (const auto* value = fields.find("pattern")) {
    Fields pattern(*value, fields.place_of("pattern"));
    if (const auto text = pattern.optional_text("String")) {
      if (text->empty())
        pattern.fail("String", "is empty; a text was wanted");
      else
        step = replacing(*text, content);
    } else if (const auto rule = pattern.text("Regex"); rule == " {2,}") {
      step = {[content](std::string_view given) { return with_runs_replaced(given, content); },
              std::max(1.0, static_cast<double>(content.size()) / 2)};
    } else {
      pattern.fail("Regex", "is \"" + rule + "\"; only \" {2,}\" is known here");
    }
    if (auto status = pattern.finish(); !status) return status.error();
  } else {
    fields.fail("pattern", "is missing; a map with String or Regex was wanted");
  }
  if (auto status = fields.finish(); !status) return status.error();
  return Normalizers{step};
}

Result<Normalizers> read_bert_normalizer(Fields& fields) {
  Normalizers steps;
  if (fields.boolean("clean_text", true)) steps.push_back({without_controls});
  if (fields.boolean("handle_chinese_chars", true)) steps.push_back({with_chinese_apart, 2});
  const bool lowercase = fields.boolean("lowercase", true);
  if (fields.boolean("strip_accents", lowercase)) {
    steps.push_back({decomposed, growth_of_forms});
    steps.push_back({without_accents});
  }
  if (lowercase) steps.push_back({in_lowercase, 2});
  if (auto status = fields.finish(); !status) return status.error();
  return steps;
}

Result<Normalizers> read_charsmap(Fields& fields) {
  const auto coded = fields.text("precompiled_charsmap");
  if (auto status = fields.finish(); !status) return status.error();
  auto map = Charsmap::read(coded);
  if (!map) return within(fields.place_of("precompiled_charsmap"), map.error());
  const auto growth = static_cast<double>(std::max<std::size_t>(1, (*map)->longest()));
  return Normalizers{
      {[map = std::move(*map)](std::string_view text) { return map->apply(text); }, growth}};
}

Result<Normalizers> read_normalizer(const Value& value, const std::string& place);

Result<Normalizers> read_normalizer_sequence(Fields& fields) {
  Normalizers steps;
  const auto* list = fields.list("normalizers");
  if (auto status = fields.finish(); !status) return status.error();
  for (std::size_t i = 0; i < list->size(); ++i) {
    auto read =
        read_normalizer((*list)[i], fields.place_of("normalizers") + "[" + std::to_string(i) + "]");
    if (!read) return read.error();
    for (auto& step : *read) steps.push_back(std::move(step));
  }
  return steps;
}

Result<Normalizers> read_normalizer(const Value& value, const std::string& place) {
  Fields fields(value, place);
  const auto type = fields.text("type");
  if (type == "Sequence") return read_normalizer_sequence(fields);
  if (type == "Replace") return read_replacing_normalizer(fields);
  if (type == "BertNormalizer") return read_bert_normalizer(fields);
  if (type == "Precompiled") return read_charsmap(fields);
  Normalizers steps;
  if (type == "NFC") {
    steps.push_back({composed, growth_of_forms});
  } else if (type == "NFD") {
    steps.push_back({decomposed, growth_of_forms});
  } else if (type == "Lowercase") {
    steps.push_back({in_lowercase, 2});
  } else if (type == "StripAccents") {
    steps.push_back({without_accents});
  } else if (type == "Strip") {
    const bool left = fields.boolean("strip_left", true);
    const bool right = fields.boolean("strip_right", true);
    steps.push_back({[=](std::string_view text) { return without_space(text, left, right); }});
  } else if (type == "Prepend") {
    const auto prefix = fields.text("prepend");
    if (prefix.size() > longest_prefix)
      fields.fail("prepend", "has " + std::to_string(prefix.size()) + " bytes; at most " +
                                 std::to_string(longest_prefix) + " are taken");
    steps.push_back({[prefix](std::string_view text) {
      return text.empty() ? std::string() : prefix + std::string(text);
    }});
  } else {
    fields.fail("type", "is \"" + type +
                            "\"; known are BertNormalizer, Lowercase, NFC, NFD, Precompiled, "
                            "Prepend, Replace, Sequence, Strip and StripAccents");
  }
  if (auto status = fields.finish(); !status) return status.error();
  return steps;
}

}  // namespace

Result<Normalizers> read_normalizers(const Value* value, const std::string& place) {
  if (!value) return Normalizers();
  auto steps = read_normalizer(*value, place);
  if (!steps) return steps.error();
  double growth = 1;
  for (const auto& step : *steps) growth *= step.growth;
  if (steps->size() > most_steps || growth > most_growth)
    return Error{place + ": has " + std::to_string(steps->size()) +
                 " steps that could make a text " + std::to_string(growth) +
                 " times as long; at most 32 steps and 256 times are taken"};
  return steps;
}

std::string normalized(const Normalizers& steps, std::string_view text) {
  std::string changed(text);
  for (const auto& step : steps) changed = step.change(changed);
  return changed;
}

}  // namespace troupe::storage
