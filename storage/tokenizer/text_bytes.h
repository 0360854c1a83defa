#pragma once

#include <cstdint>
#include <span>

#include "core/result.h"
#include "storage/tokenizer/tokenizer.h"

namespace troupe::storage {

/// Returns the bytes of text that tokens stand for if the token `before` comes before them. Special
/// tokens, such as "</s>", stand for none. The error names the first id that is not in the
/// vocabulary.
Result<std::int64_t> text_bytes(const Tokenizer& tokenizer, std::int32_t before,
                                std::span<const std::int32_t> tokens);

}  // namespace troupe::storage
