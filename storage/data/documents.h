#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "storage/tokenizer/tokenizer.h"

namespace troupe::storage {

/// Calls `give` with the tokens of each document in a file, in order. A .jsonl file has a document
/// on each line that is not blank: a map with "text", or with "tokens", a list of integers. Any
/// other file is one document of text. Without a tokenizer (null) the tokens of a text are its
/// bytes, and a line break ends each document of a .jsonl file; with one, its end-of-text token
/// does where it has one. Errors name the file and the line. Ends at the first error of `give`.
Status for_each_document(const std::string& path, std::string_view contents,
                         const Tokenizer* tokenizer,
                         const std::function<Status(std::vector<std::int32_t>)>& give);

}  // namespace troupe::storage
