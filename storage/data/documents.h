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
/// other file is one text. Without a tokenizer (null) bytes are tokens. A text of a .jsonl file
/// ends with the tokenizer's end-of-text token, if any, or without a tokenizer with a line break.
/// Errors name file and line. Stops at the first error of `give`.
Status for_each_document(const std::string& path, std::string_view contents,
                         const Tokenizer* tokenizer,
                         const std::function<Status(std::vector<std::int32_t>)>& give);

}  // namespace troupe::storage
