#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/result.h"
#include "storage/files/files.h"

namespace troupe::storage {

/// A file of tokens in llm.c's layout: a header of 256 integers, then the tokens. GPT-2's tokens
/// have 16 bits (magic 20240520, version 1), LLaMA 3's have 32 (magic 20240801, version 7).
class TokenShard {
 public:
  enum class Width { bits16, bits32 };

  static Result<TokenShard> open(Files& files, const std::string& path);
  /// Returns a shard or an error for any bytes.
  static Result<TokenShard> parse(Bytes bytes);

  Width width() const { return width_; }
  std::int64_t count() const { return count_; }
  std::uint32_t operator[](std::int64_t i) const;
  Status unchanged() const { return bytes_.unchanged(); }

 private:
  Bytes bytes_;
  Width width_ = Width::bits16;
  std::int64_t count_ = 0;
};

/// Writes a new file. Returns an error for a token that does not fit the width.
Status write_token_shard(Files& files, const std::string& path, TokenShard::Width width,
                         std::span<const std::int32_t> tokens);

}  // namespace troupe::storage
