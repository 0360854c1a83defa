#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/value.h"
#include "storage/data/dataset.h"
#include "storage/data/token_shard.h"
#include "storage/tokenizer/tokenizer.h"

namespace troupe::storage {

/// `troupe data make`: writes a dataset to files, by the extension of `path`. Samples of tokens
/// become one token shard (.bin) in which they follow each other, images IDX with the labels beside
/// them, and anything else .safetensors. Returns the files that were written.
Result<std::vector<std::string>> write_dataset(Files& files, const Dataset& dataset,
                                               const std::string& path);

/// `troupe data prepare`: a text or .jsonl file becomes token shards PREFIX_000000.bin,
/// PREFIX_000001.bin,
/// ... of at most `shard_tokens` each.
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
/// Without a tokenizer (null) every byte is a token.
Result<Prepared> prepare_tokens(Files& files, const PrepareOrder& order,
                                const Tokenizer* tokenizer);

/// `troupe data inspect`, `troupe checkpoint inspect` of a file: what is in it, as a map for people
/// and programs. Knows .bin, IDX, .safetensors, tokenizer.json, and the spec of anything that
/// open_dataset() opens.
Result<Value> inspect_data(Files& files, const std::string& spec);

}  // namespace troupe::storage
