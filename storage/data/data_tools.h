#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"
#include "storage/data/dataset.h"
#include "storage/data/token_shard.h"
#include "storage/tokenizer/tokenizer.h"

namespace troupe::storage {

/// Implements `troupe data make`: writes a dataset to files, by the extension of `path`. Tokens
/// become one token shard (.bin) of consecutive samples, images become IDX with a file of labels,
/// anything else .safetensors. Returns the files that were written.
Result<std::vector<std::string>> write_dataset(Files& files, const Dataset& dataset,
                                               const std::string& path);

/// The arguments of `troupe data prepare`, which turns a text or .jsonl file into token shards
/// PREFIX_000000.bin, PREFIX_000001.bin, ... of at most `shard_tokens` each.
struct PrepareOrder {
  std::string input;
  std::string prefix;
  TokenShard::Width width = TokenShard::Width::bits16;
  std::int64_t shard_tokens = 100'000'000;
  /// The share at the end of the input that is kept apart for validation, in PREFIX-valid_*.bin.
  double validate = 0;
};
/// The shards that were written from one part of an input.
struct PreparedPart {
  std::vector<std::string> files;
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
  std::int64_t bytes = 0;  // The length of this part of the input.
};
struct Prepared {
  PreparedPart train;
  PreparedPart validate;  // Without files if nothing was kept apart.
};
/// Cuts the last `share` of a text off, at the beginning of a line or else of a character. Returns
/// the length of the first part. Both parts have at least one byte if `share` is above 0.
std::size_t split_point(std::string_view text, double share);
/// Writes the shards. Without a tokenizer (null) every byte is a token.
Result<Prepared> prepare_tokens(Files& files, const PrepareOrder& order,
                                const Tokenizer* tokenizer);

/// Implements `troupe data inspect` and `troupe checkpoint inspect` for a file: returns a map that
/// describes it. Knows .bin, IDX, .safetensors, tokenizer.json, and every spec that open_dataset()
/// opens.
Result<Value> inspect_data(Files& files, const std::string& spec);

}  // namespace troupe::storage
