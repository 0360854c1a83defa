#pragma once

#include <cstdint>
#include <string>
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
};
struct Prepared {
  std::vector<std::string> files;
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
};
/// Writes the shards. Without a tokenizer (null) every byte is a token.
Result<Prepared> prepare_tokens(Files& files, const PrepareOrder& order,
                                const Tokenizer* tokenizer);

/// Implements `troupe data inspect` and `troupe checkpoint inspect` for a file: returns a map that
/// describes it. Knows .bin, IDX, .safetensors, tokenizer.json, and every spec that open_dataset()
/// opens.
Result<Value> inspect_data(Files& files, const std::string& spec);

}  // namespace troupe::storage
