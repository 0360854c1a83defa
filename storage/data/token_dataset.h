#pragma once

#include <memory>
#include <vector>

#include "storage/data/data_spec.h"
#include "storage/data/dataset.h"

namespace troupe::storage {

/// Tokens one after the other, from a file or in memory. Any thread may read.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual const std::string& path() const = 0;
  virtual std::int64_t count() const = 0;
  /// Writes tokens `first`, first + 1, ...; all of them are there. A token that no i32 holds
  /// becomes -1.
  virtual void copy(std::int64_t first, std::span<std::int32_t> tokens) const = 0;
  virtual Status unchanged() const { return Done{}; }
};

/// Samples of needs.context tokens; none spans two sources. Tokens are checked as they are read.
/// All of them are read now only if nothing else tells how many different ones there may be, or if
/// needs.classes asks for it. `what` says in the log what the tokens are; `vocabulary` is how many
/// there may be, or 0 if only the largest one tells.
Result<std::unique_ptr<Dataset>> make_token_dataset(
    std::vector<std::unique_ptr<TokenSource>> sources, const std::string& what,
    const DataNeeds& needs, std::int64_t vocabulary);

/// Text, .jsonl and token shards.
Result<std::unique_ptr<Dataset>> open_text(DataSpec spec, const DataNeeds& needs, Files& files);
Result<std::unique_ptr<Dataset>> open_shards(DataSpec spec, const DataNeeds& needs, Files& files);

}  // namespace troupe::storage
