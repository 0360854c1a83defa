#include <algorithm>
#include <utility>

#include "core/text.h"
#include "storage/tokenizer/fields.h"
#include "storage/tokenizer/metaspace.h"
#include "storage/tokenizer/steps.h"
#include "storage/tokenizer/words.h"
#include "storage/unicode/text_forms.h"
#include "storage/unicode/unicode.h"

namespace troupe::storage {
namespace {

using SplitterSteps = std::vector<Splitter>;

/// The ways to treat the delimiters between pieces. The names are those of the library.
enum class Delimiters { removed, isolated, merged_with_previous, merged_with_next, contiguous };

Delimiters read_behavior(Fields& fields, std::string_view key,
                         std::optional<std::size_t> otherwise = {}) {
  return static_cast<Delimiters>(fields.among(
      key, {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"},
      otherwise));
}

/// A part of a text: from `begin` to `end`.
struct Part {
  std::size_t begin, end;
};

/// Splits a text at its delimiters. `find(text, from)` returns the first one at or after `from`;
/// one that is empty lies behind the text.
template <class Find>
void split_at(std::string_view text, bool is_first, Delimiters delimiters, const Find& find,
              const TakePiece& take) {
  const auto give = [&](Part part) {
    if (part.begin < part.end)
      take(text.substr(part.begin, part.end - part.begin), is_first && part.begin == 0);
  };
  // `held` is a part that what follows may still become a part of.
  Part held{0, 0};
  bool held_is_delimiter = false;
  for (std::size_t at = 0; at < text.size();) {
    const Part found = find(text, at);
    if (found.begin > at) {
      const bool joins = held_is_delimiter && delimiters == Delimiters::merged_with_next;
      if (!joins) give(std::exchange(held, {at, at}));
      held = {joins ? held.begin : at, found.begin};
      held_is_delimiter = false;
    }
    if (found.begin == found.end) break;
    const bool joins_text = delimiters == Delimiters::merged_with_previous && !held_is_delimiter;
    const bool joins_other = delimiters == Delimiters::contiguous && held_is_delimiter;
    if (held.begin < held.end && held.end == found.begin && (joins_text || joins_other)) {
      held.end = found.end;
    } else {
      give(held);
      held = delimiters == Delimiters::removed ? Part{found.end, found.end} : found;
    }
    held_is_delimiter = true;
    at = found.end;
  }
  give(held);
}

/// Returns a function for split_at() that finds characters of a kind.
template <class IsDelimiter>
auto characters(IsDelimiter is_delimiter) {
  return [is_delimiter](std::string_view text, std::size_t from) {
    while (from < text.size()) {
      const auto next = first_character(text.substr(from));
      if (is_delimiter(next)) return Part{from, from + next.bytes};
      from += next.bytes;
    }
    return Part{from, from};
  };
}

bool is_blank_character(const Character& c) { return kind_of(c.code) == CharacterKind::space; }
bool is_punctuation(const Character& c) { return contains(punctuation, c.code); }
bool is_digit(const Character& c) { return contains(digits, c.code); }

template <class IsDelimiter>
Splitter at_characters(IsDelimiter is_delimiter, Delimiters delimiters) {
  return [=](std::string_view text, bool is_first, const TakePiece& take) {
    split_at(text, is_first, delimiters, characters(is_delimiter), take);
  };
}

auto occurrences_of(std::string_view pattern) {
  return [pattern](std::string_view text, std::size_t from) {
    const auto at = text.find(pattern, from);
    return at == text.npos ? Part{text.size(), text.size()} : Part{at, at + pattern.size()};
  };
}

Splitter into_words(WordRule rule) {
  return [rule](std::string_view text, bool is_first, const TakePiece& take) {
    while (!text.empty()) {
      const auto word = first_word(text, rule);
      take(word, std::exchange(is_first, false));
      text.remove_prefix(word.size());
    }
  };
}

Result<SplitterSteps> read_byte_level(Fields& fields) {
  SplitterSteps steps;
  fields.ignore("trim_offsets");
  if (fields.boolean("add_prefix_space", true))
    steps.push_back([](std::string_view text, bool is_first, const TakePiece& take) {
      if (text.front() == ' ') return take(text, is_first);
      take(" " + std::string(text), is_first);
    });
  if (fields.boolean("use_regex", true)) steps.push_back(into_words(WordRule::gpt2));
  if (auto status = fields.finish(); !status) return status.error();
  return steps;
}

Result<SplitterSteps> read_split(Fields& fields) {
  const auto delimiters = read_behavior(fields, "behavior");
  fields.must_be_unset("invert");
  Splitter step;
  if (const auto* value = fields.find("pattern")) {
    Fields pattern(*value, fields.place_of("pattern"));
    if (const auto text = pattern.optional_text("String")) {
      if (text->empty()) pattern.fail("String", "is empty; a text was wanted");
      step = [text = *text, delimiters](std::string_view piece, bool is_first,
                                        const TakePiece& take) {
        split_at(piece, is_first, delimiters, occurrences_of(text), take);
      };
    } else {
      const auto expression = pattern.text("Regex");
      const auto rule = word_rule(expression);
      if (!rule)
        pattern.fail("Regex", "is \"" + expression +
                                  "\"; only the patterns of GPT-2, Llama 3 and Qwen2 are known");
      else if (delimiters != Delimiters::isolated)
        fields.fail("behavior", "is not Isolated, which was wanted with a Regex");
      else
        step = into_words(*rule);
    }
    if (auto status = pattern.finish(); !status) return status.error();
  } else {
    fields.fail("pattern", "is missing; a map with String or Regex was wanted");
  }
  if (auto status = fields.finish(); !status) return status.error();
  return SplitterSteps{step};
}

Result<SplitterSteps> read_metaspace(Fields& fields) {
  const auto metaspace = Metaspace::read(fields);
  if (!metaspace) return metaspace.error();
  return SplitterSteps{[m = *metaspace](std::string_view text, bool is_first,
                                        const TakePiece& take) {
    auto changed = with_replaced(text, " ", m.replacement);
    const bool is_wanted = m.prepend == Metaspace::Prepend::always ||
                           (m.prepend == Metaspace::Prepend::first && is_first);
    if (is_wanted && !changed.starts_with(m.replacement)) changed.insert(0, m.replacement);
    if (!m.split) return take(changed, is_first);
    split_at(changed, is_first, Delimiters::merged_with_next, occurrences_of(m.replacement), take);
  }};
}

/// A splitter under construction: what it is made of, and whether the model gets bytes.
struct ReadSplitter {
  SplitterSteps steps;
  bool is_byte_level = false;
};
Result<ReadSplitter> read_splitter(const Value& value, const std::string& place);

Result<ReadSplitter> read_splitter_sequence(Fields& fields) {
  ReadSplitter all;
  const auto* list = fields.list("pretokenizers");
  if (auto status = fields.finish(); !status) return status.error();
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto place = fields.place_of("pretokenizers") + "[" + std::to_string(i) + "]";
    if (all.is_byte_level)
      return Error{place + ": follows ByteLevel, which was wanted as the last one"};
    auto read = read_splitter((*list)[i], place);
    if (!read) return read.error();
    all.is_byte_level = read->is_byte_level;
    for (auto& step : read->steps) all.steps.push_back(std::move(step));
  }
  return all;
}

Result<ReadSplitter> read_splitter(const Value& value, const std::string& place) {
  Fields fields(value, place);
  const auto type = fields.text("type");
  if (type == "Sequence") return read_splitter_sequence(fields);
  Result<SplitterSteps> steps = SplitterSteps();
  if (type == "ByteLevel") {
    steps = read_byte_level(fields);
  } else if (type == "Split") {
    steps = read_split(fields);
  } else if (type == "Metaspace") {
    steps = read_metaspace(fields);
  } else {
    SplitterSteps made;
    if (type == "BertPreTokenizer") {
      made.push_back(at_characters(is_blank_character, Delimiters::removed));
      made.push_back(at_characters(is_punctuation, Delimiters::isolated));
    } else if (type == "WhitespaceSplit") {
      made.push_back(at_characters(is_blank_character, Delimiters::removed));
    } else if (type == "Punctuation") {
      made.push_back(at_characters(
          is_punctuation,
          read_behavior(fields, "behavior", static_cast<std::size_t>(Delimiters::isolated))));
    } else if (type == "Digits") {
      const bool each = fields.boolean("individual_digits", false);
      made.push_back(at_characters(is_digit, each ? Delimiters::isolated : Delimiters::contiguous));
    } else {
      fields.fail("type", "is \"" + type +
                              "\"; known are BertPreTokenizer, ByteLevel, Digits, Metaspace, "
                              "Punctuation, Sequence, Split and WhitespaceSplit");
    }
    if (auto status = fields.finish(); !status) return status.error();
    steps = std::move(made);
  }
  if (!steps) return steps.error();
  return ReadSplitter{std::move(*steps), type == "ByteLevel"};
}

}  // namespace

Result<Splitters> read_splitters(const Value* value, const std::string& place) {
  if (!value) return Splitters();
  auto read = read_splitter(*value, place);
  if (!read) return read.error();
  if (read->steps.size() > most_steps)
    return Error{place + ": has " + std::to_string(read->steps.size()) +
                 " steps; at most 32 are taken"};
  return Splitters{std::move(read->steps), read->is_byte_level};
}

}  // namespace troupe::storage
