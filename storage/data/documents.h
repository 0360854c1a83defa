#pragma once

#include <cstdint>
#include <functional>
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

/// A prompt, and the answer that a model should give.
struct Example {
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> answer;
};

/// Returns whether a file is a .jsonl file whose first line that is not blank has a "prompt".
bool holds_examples(const std::string& path, std::string_view contents);

/// Calls `give` with each line that is not blank of a file that holds_examples(): a map with
/// "prompt" and "answer", each a text or a list of tokens. An answer in a text ends as a document
/// does. Otherwise like for_each_document().
Status for_each_example(const std::string& path, std::string_view contents,
                        const Tokenizer* tokenizer, const std::function<Status(Example)>& give);

}  // namespace troupe::storage
