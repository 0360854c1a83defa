#include "storage/data/token_dataset.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "storage/data/documents.h"
#include "storage/data/example_dataset.h"
#include "storage/data/token_shard.h"

namespace troupe::storage {
namespace {

class MemoryTokens final : public TokenSource {
 public:
  MemoryTokens(std::string path, std::vector<std::int32_t> tokens)
      : path_(std::move(path)), tokens_(std::move(tokens)) {}
  const std::string& path() const override { return path_; }
  std::int64_t count() const override { return static_cast<std::int64_t>(tokens_.size()); }
  void copy(std::int64_t first, std::span<std::int32_t> tokens) const override {
    std::copy_n(tokens_.begin() + first, tokens.size(), tokens.begin());
  }

 private:
  std::string path_;
  std::vector<std::int32_t> tokens_;
};

class ByteTokens final : public TokenSource {
 public:
  ByteTokens(std::string path, Bytes bytes) : path_(std::move(path)), bytes_(std::move(bytes)) {}
  const std::string& path() const override { return path_; }
  std::int64_t count() const override { return static_cast<std::int64_t>(bytes_.size()); }
  void copy(std::int64_t first, std::span<std::int32_t> tokens) const override {
    const auto bytes = bytes_.span().subspan(static_cast<std::size_t>(first), tokens.size());
    std::transform(bytes.begin(), bytes.end(), tokens.begin(), std::to_integer<std::int32_t>);
  }
  Status unchanged() const override { return bytes_.unchanged(); }

 private:
  std::string path_;
  Bytes bytes_;
};

class ShardTokens final : public TokenSource {
 public:
  ShardTokens(std::string path, TokenShard shard)
      : path_(std::move(path)), shard_(std::move(shard)) {}
  const std::string& path() const override { return path_; }
  std::int64_t count() const override { return shard_.count(); }
  void copy(std::int64_t first, std::span<std::int32_t> tokens) const override {
    for (auto& token : tokens) {
      const auto stored = shard_[first++];
      token = stored <= INT32_MAX ? static_cast<std::int32_t>(stored) : -1;
    }
  }
  Status unchanged() const override { return shard_.unchanged(); }

 private:
  std::string path_;
  TokenShard shard_;
};

/// Returns the error for a token that is not in [0, vocabulary).
Error misplaced(const TokenSource& source, std::int64_t position, std::int32_t token,
                std::int64_t vocabulary) {
  const auto place = source.path() + ": token " + std::to_string(position);
  if (token < 0) return {place + " is larger than 2147483647; that is no token"};
  return {place + " is " + std::to_string(token) + ", but the model's vocabulary has " +
          std::to_string(vocabulary) + "; set model.vocab to more than the largest token, or to " +
          "\"auto\""};
}

/// Returns the largest token. The error names the first that is not in [0, vocabulary).
Result<std::int32_t> largest_token(const TokenSource& source, std::int64_t vocabulary) {
  std::vector<std::int32_t> tokens(4096);
  std::int32_t largest = 0;
  for (std::int64_t first = 0; first < source.count();) {
    const auto size = std::min<std::int64_t>(4096, source.count() - first);
    tokens.resize(static_cast<std::size_t>(size));
    source.copy(first, tokens);
    for (const auto token : tokens) {
      if (token < 0 || token >= vocabulary) return misplaced(source, first, token, vocabulary);
      largest = std::max(largest, token);
      ++first;
    }
  }
  return largest;
}

class TokenDataset final : public Dataset {
 public:
  TokenDataset(std::vector<std::unique_ptr<TokenSource>> sources, std::string description,
               std::int64_t context, std::int64_t classes)
      : sources_(std::move(sources)),
        description_(std::move(description)),
        shape_{Shape{context}, DType::i32, Shape{context}, DType::i32, "tokens"},
        classes_(classes) {
    for (const auto& source : sources_) {
      count_ += std::max<std::int64_t>((source->count() - 1) / context, 0);
      ends_.push_back(count_);
    }
  }

  std::int64_t count() const override { return count_; }
  const SampleShape& shape() const override { return shape_; }
  std::int64_t classes() const override { return classes_; }
  std::string description() const override { return description_; }

  Status read(const Place& place, const SampleSpans& to) const override {
    const auto index = place.sample;
    const auto input = to.inputs[0], target = to.target;
    assert(index >= 0 && index < count());
    assert(to.fits(shape_));
    const auto at = std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin();
    const auto& source = *sources_[static_cast<std::size_t>(at)];
    if (auto same = source.unchanged(); !same) return same;
    const auto within_source = index - (at ? ends_[static_cast<std::size_t>(at - 1)] : 0);
    const auto context = shape_.input.last();
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(context) + 1);
    source.copy(within_source * context, tokens);
    // Check again: a mapped file may have changed since it was opened, and shards may be unchecked.
    for (std::size_t i = 0; i < tokens.size(); ++i)
      if (tokens[i] < 0 || tokens[i] >= classes_)
        return misplaced(source, within_source * context + static_cast<std::int64_t>(i), tokens[i],
                         classes_);
    std::memcpy(input.data(), tokens.data(), input.size());
    std::memcpy(target.data(), tokens.data() + 1, target.size());
    return Done{};
  }

 private:
  std::vector<std::unique_ptr<TokenSource>> sources_;
  std::string description_;
  SampleShape shape_;
  std::int64_t classes_;
  std::int64_t count_ = 0;
  std::vector<std::int64_t> ends_;  // The number of samples up to the end of each source.
};

/// Returns the files that a path with a star in its last part matches, sorted by name.
Result<std::vector<std::string>> matching(const std::string& path, Files& files) {
  const std::string pattern(name_of(path));
  const auto star = pattern.find('*');
  if (star == std::string::npos) return std::vector<std::string>{path};
  const auto before = pattern.substr(0, star);
  const auto after = pattern.substr(star + 1);
  const auto entries = files.list(parent_of(path));
  if (!entries) return entries.error();
  std::vector<std::string> paths;
  for (const auto& entry : *entries)
    if (entry.kind == DirectoryEntry::Kind::file &&
        entry.name.size() >= before.size() + after.size() && entry.name.starts_with(before) &&
        entry.name.ends_with(after))
      paths.push_back(path.substr(0, path.size() - pattern.size()) + entry.name);
  if (paths.empty()) return Error{path + ": there is no such file"};
  return paths;
}

}  // namespace

Result<std::unique_ptr<Dataset>> make_token_dataset(
    std::vector<std::unique_ptr<TokenSource>> sources, const std::string& what,
    const DataNeeds& needs, std::int64_t vocabulary) {
  assert(!sources.empty());
  const auto limit = needs.classes > 0 ? needs.classes : std::int64_t{INT32_MAX} + 1;
  std::int64_t tokens = 0;
  std::int64_t samples = 0;
  std::int32_t largest = 0;
  // Bytes are below 256, and documents were checked one by one. So only shards may need reading.
  const bool is_known = vocabulary > 0 && needs.classes == 0;
  for (const auto& source : sources) {
    if (!is_known) {
      const auto found = largest_token(*source, limit);
      if (!found) return found.error();
      largest = std::max(largest, *found);
    }
    tokens += source->count();
    if (source->count() > 0) samples += (source->count() - 1) / needs.context;
  }
  if (samples == 0)
    return Error{sources.front()->path() + ": has " + std::to_string(tokens) +
                 " tokens; one sample of model.context = " + std::to_string(needs.context) +
                 " needs " + std::to_string(needs.context + 1)};
  const auto description =
      std::to_string(tokens) + " " + what +
      (sources.size() == 1 ? "" : " in " + std::to_string(sources.size()) + " files");
  const auto classes = std::max(vocabulary, std::int64_t{largest} + 1);
  return std::unique_ptr<Dataset>(
      std::make_unique<TokenDataset>(std::move(sources), description, needs.context, classes));
}

Result<std::unique_ptr<Dataset>> open_text(DataSpec spec, const DataNeeds& needs, Files& files) {
  const auto tokenizer_path = spec.text("tokenizer");
  if (auto status = spec.finish(); !status) return status.error();
  const auto& path = spec.name();
  auto bytes = files.read(path);
  if (!bytes) return bytes.error();

  std::vector<std::unique_ptr<TokenSource>> sources;
  if (!tokenizer_path && !path.ends_with(".jsonl")) {
    sources.push_back(std::make_unique<ByteTokens>(path, std::move(*bytes)));
    return make_token_dataset(std::move(sources), "bytes of text", needs, 256);
  }
  std::optional<Tokenizer> tokenizer;
  if (tokenizer_path) {
    auto opened = Tokenizer::open(files, *tokenizer_path);
    if (!opened) return opened.error();
    tokenizer = std::move(*opened);
  }
  if (holds_examples(path, bytes->text()))
    return make_example_dataset(path, bytes->text(), tokenizer ? &*tokenizer : nullptr, needs);
  std::vector<std::int32_t> tokens;
  const auto status = for_each_document(
      path, bytes->text(), tokenizer ? &*tokenizer : nullptr,
      [&](std::vector<std::int32_t> document) -> Status {
        for (const auto token : document)
          if (needs.classes > 0 && token >= needs.classes)
            return Error{"the document has the token " + std::to_string(token) +
                         ", but the model's vocabulary has " + std::to_string(needs.classes) +
                         "; set model.vocab to more than the largest token, or to \"auto\""};
        tokens.insert(tokens.end(), document.begin(), document.end());
        return Done{};
      });
  if (!status) return status.error();
  sources.push_back(std::make_unique<MemoryTokens>(path, std::move(tokens)));
  return make_token_dataset(std::move(sources), "tokens", needs,
                            tokenizer ? tokenizer->vocabulary() : 0);
}

Result<std::unique_ptr<Dataset>> open_shards(DataSpec spec, const DataNeeds& needs, Files& files) {
  if (auto status = spec.finish(); !status) return status.error();
  const auto paths = matching(spec.name(), files);
  if (!paths) return paths.error();
  std::vector<std::unique_ptr<TokenSource>> sources;
  for (const auto& path : *paths) {
    auto shard = TokenShard::open(files, path);
    if (!shard) return shard.error();
    sources.push_back(std::make_unique<ShardTokens>(path, std::move(*shard)));
  }
  return make_token_dataset(std::move(sources), "tokens", needs, needs.vocabulary);
}

}  // namespace troupe::storage
