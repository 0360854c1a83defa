#pragma once

#include <memory>
#include <vector>

#include "storage/data/data_spec.h"
#include "storage/data/dataset.h"

namespace troupe::storage {

/// A sequence of tokens, from a file or in memory. Any thread may read.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual const std::string& path() const = 0;
  virtual std::int64_t count() const = 0;
  /// Copies tokens `first`, first + 1, ..., which must exist. A token that does not fit into i32
  /// becomes -1.
  virtual void copy(std::int64_t first, std::span<std::int32_t> tokens) const = 0;
  virtual Status unchanged() const { return Done{}; }
};

struct TextOptions;

/// Returns samples of needs.context tokens. No sample spans two sources. Tokens are checked when
/// they are read. All of them are read now only if needs.classes asks for it, if nothing else tells
/// the number of distinct tokens, or if a sample is a document. `what` describes the tokens in the
/// log. `vocabulary` bounds them, or is 0 if only the largest token tells.
Result<std::unique_ptr<Dataset>> make_token_dataset(
    std::vector<std::unique_ptr<TokenSource>> sources, const std::string& what,
    const TextOptions& options, const DataNeeds& needs, std::int64_t vocabulary);

/// Opens text, .jsonl and token shards.
Result<std::unique_ptr<Dataset>> open_text(DataSpec spec, const DataNeeds& needs, Files& files);
Result<std::unique_ptr<Dataset>> open_shards(DataSpec spec, const DataNeeds& needs, Files& files);

}  // namespace troupe::storage
