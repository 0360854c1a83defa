#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "storage/tokenizer/tokenizer.h"

namespace troupe::storage {

/// Calls `give` with the tokens of each document in a file, in order. In a .jsonl file each line
/// that is not blank is a document: a map with "text", or with "tokens", a list of integers. Any
/// other file is one text. Without a tokenizer (null) bytes are tokens. Each text has around it the
/// tokens of Tokenizer::around(). Where none stand behind it, a text of a .jsonl file ends with the
/// tokenizer's end-of-text token, if any, or without a tokenizer with a line break.
/// Errors name file and line. Stops at the first error of `give`.
Status for_each_document(const std::string& path, std::string_view contents,
                         const Tokenizer* tokenizer,
                         const std::function<Status(std::vector<std::int32_t>)>& give);

/// Returns the token with which a text of a .jsonl file ends. A tokenizer may have none.
std::optional<std::int32_t> end_of_documents(const Tokenizer* tokenizer);

/// The form of the lines of a file.
enum class LineKind : std::uint8_t {
  documents,
  examples,   // A "prompt", and the "answer" that a model should give.
  pairs,      // A "source" that an encoder reads, and the "target" that a decoder writes.
  sentences,  // A "first" and a "second" text that an encoder reads side by side.
};

/// Returns what the first line that is not blank is. Only .jsonl files have two texts on a line.
LineKind kind_of_lines(const std::string& path, std::string_view contents);

/// The two texts of a line.
struct Example {
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> answer;
  /// How many tokens at the end of each only end it.
  std::size_t prompt_ending = 0, answer_ending = 0;
};

/// Calls `give` with each line that is not blank of a file with two texts on a line: a map with two
/// texts or lists of tokens. A text that is no prompt ends as a document does, and the first one
/// begins as one. Otherwise like for_each_document().
Status for_each_example(const std::string& path, std::string_view contents, LineKind kind,
                        const Tokenizer* tokenizer, const std::function<Status(Example)>& give);

}  // namespace troupe::storage
