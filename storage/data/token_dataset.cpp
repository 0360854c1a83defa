#include "storage/data/token_dataset.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/text.h"
#include "storage/data/documents.h"
#include "storage/data/example_dataset.h"
#include "storage/data/text_samples.h"
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

/// The tokens of a text, cut into windows. Any thread may read.
class Windows {
 public:
  Windows(std::vector<std::unique_ptr<TokenSource>> sources, const TextOptions& options,
          const SampleMaker& maker, std::int64_t classes)
      : sources_(std::move(sources)),
        options_(options),
        width_(maker.width()),
        wants_next_(maker.wants_next()),
        classes_(classes) {
    for (const auto& source : sources_) {
      if (options_.documents == TextOptions::Documents::padded)
        find_documents(*source);
      else
        count_ += std::max<std::int64_t>((source->count() - (wants_next_ ? 1 : 0)) / width_, 0);
      ends_.push_back(count_);
    }
  }

  std::int64_t count() const { return count_; }

  Status read(std::int64_t index, Window& window) const {
    const auto at = std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin();
    const auto& source = *sources_[static_cast<std::size_t>(at)];
    if (auto same = source.unchanged(); !same) return same;
    const auto within_source = index - (at ? ends_[static_cast<std::size_t>(at - 1)] : 0);
    Piece piece{within_source * width_, width_, wants_next_};
    if (!pieces_.empty()) piece = pieces_[static_cast<std::size_t>(index)];
    window.tokens.resize(static_cast<std::size_t>(piece.length + (piece.has_next ? 1 : 0)));
    source.copy(piece.first, window.tokens);
    // Check again: a mapped file may have changed since it was opened, and shards may be unchecked.
    for (std::size_t i = 0; i < window.tokens.size(); ++i)
      if (window.tokens[i] < 0 || window.tokens[i] >= classes_)
        return misplaced(source, piece.first + static_cast<std::int64_t>(i), window.tokens[i],
                         classes_);
    if (piece.has_next) {
      window.behind = window.tokens.back();
      window.tokens.pop_back();
    }
    find_ends(window);
    return Done{};
  }

 private:
  /// A window of a source.
  struct Piece {
    std::int64_t first = 0;
    std::int64_t length = 0;
    bool has_next = false;  // The document goes on behind it.
  };

  /// Cuts the documents of a source into pieces of at most a window. Leaves a last token alone out,
  /// of which there is nothing to learn.
  void find_documents(const TokenSource& source) {
    std::int64_t first = 0;
    const auto add = [&](std::int64_t end, bool has_end) {
      while (first < end) {
        const auto length = std::min(width_, end - first);
        const bool has_next = wants_next_ && first + length < end;
        const bool is_bare = length == 1 && !has_next && (has_end || wants_next_);
        if (!is_bare) pieces_.push_back({first, length, has_next});
        first += length;
      }
    };
    std::vector<std::int32_t> tokens;
    for (std::int64_t begin = 0; begin < source.count();) {
      tokens.resize(static_cast<std::size_t>(std::min<std::int64_t>(4096, source.count() - begin)));
      source.copy(begin, tokens);
      for (const auto token : tokens)
        if (++begin; token == *options_.end) add(begin, true);
    }
    add(source.count(), false);
    count_ = static_cast<std::int64_t>(pieces_.size());
  }

  void find_ends(Window& window) const {
    const auto length = static_cast<std::int64_t>(window.tokens.size());
    window.ends.clear();
    if (options_.documents == TextOptions::Documents::apart) {
      for (std::int64_t i = 0; i < length; ++i)
        if (window.tokens[static_cast<std::size_t>(i)] == *options_.end)
          window.ends.push_back(i + 1);
      if (!window.ends.empty() && window.ends.back() == length) window.behind.reset();
    }
    if (window.ends.empty() || window.ends.back() != length) window.ends.push_back(length);
  }

  std::vector<std::unique_ptr<TokenSource>> sources_;
  TextOptions options_;
  std::int64_t width_;
  bool wants_next_;
  std::int64_t classes_;
  std::int64_t count_ = 0;
  std::vector<std::int64_t> ends_;  // The number of windows up to the end of each source.
  std::vector<Piece> pieces_;       // If a sample is a document.
};

class TextDataset final : public Dataset {
 public:
  TextDataset(Windows windows, std::unique_ptr<SampleMaker> maker, const DataNeeds& needs,
              std::string description, std::int64_t classes)
      : windows_(std::move(windows)),
        maker_(std::move(maker)),
        shape_(shape_for(needs, maker_->offers(), maker_->target())),
        description_(std::move(description)),
        classes_(classes) {}

  std::int64_t count() const override { return windows_.count(); }
  const SampleShape& shape() const override { return shape_; }
  std::int64_t classes() const override { return classes_; }
  std::string description() const override { return description_; }
  std::vector<std::string> fields() const override { return names_of(maker_->offers()); }

  Status read(const Place& place, const SampleSpans& to) const override {
    assert(place.sample >= 0 && place.sample < count());
    assert(to.fits(shape_));
    Window window;
    if (auto read = windows_.read(place.sample, window); !read) return read;
    maker_->make(window, place).write(shape_, to);
    return Done{};
  }

 private:
  Windows windows_;
  std::unique_ptr<SampleMaker> maker_;
  SampleShape shape_;
  std::string description_;
  std::int64_t classes_;
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
    const TextOptions& options, const DataNeeds& needs, std::int64_t vocabulary) {
  assert(!sources.empty());
  const std::string path = sources.front()->path();
  if (options.needs_ignored_targets() && !needs.ignore)
    return Error{path +
                 ": not all of its targets count; set model.loss.ignore = -100, the target " +
                 "that stands for the others"};
  if (options.documents != TextOptions::Documents::joined && !options.end)
    return Error{path + ": documents is given, but end, the token that ends a document, is not: " +
                 "documents=apart&end=50256"};
  const auto limit = needs.classes > 0 ? needs.classes : std::int64_t{INT32_MAX} + 1;
  std::int64_t tokens = 0;
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
  }
  auto classes = std::max(vocabulary, std::int64_t{largest} + 1);
  if (options.mask > 0 || options.corrupt > 0) {  // They put tokens into the text.
    const auto given = std::max(needs.vocabulary, needs.classes);
    const bool lacks_sentinel = options.corrupt > 0 && !options.sentinel && !needs.inputs.empty();
    if (lacks_sentinel && given == 0 && vocabulary == 0)
      return Error{
          path + ": corrupt puts the highest tokens into the text, and nothing says how " +
          "many tokens there are; give sentinel, the highest of them, or set model.vocab " +
          "to a number"};
    classes = std::max(classes, given > 0 ? given : options.least_vocabulary());
  }
  auto maker = make_sample_maker(options, needs, classes);
  if (!maker) return within(path, maker.error());
  const auto files = sources.size();
  Windows windows(std::move(sources), options, **maker, classes);
  if (windows.count() == 0) {
    const auto wanted = (*maker)->width() + ((*maker)->wants_next() ? 1 : 0);
    return Error{path + ": has " + grouped(tokens) + " tokens; one sample of model.context = " +
                 std::to_string(needs.context) + " needs " + std::to_string(wanted)};
  }
  const bool is_padded = options.documents == TextOptions::Documents::padded || options.corrupt > 0;
  if (is_padded) classes = std::max(classes, options.least_with_padding());
  const auto description =
      grouped(tokens) + " " + what + (files == 1 ? "" : " in " + std::to_string(files) + " files");
  return std::unique_ptr<Dataset>(std::make_unique<TextDataset>(
      std::move(windows), std::move(*maker), needs, description, classes));
}

Result<std::unique_ptr<Dataset>> open_text(DataSpec spec, const DataNeeds& needs, Files& files) {
  const auto tokenizer_path = spec.text("tokenizer");
  auto options = TextOptions::read(spec);
  if (auto status = spec.finish(); !status) return status.error();
  const auto& path = spec.name();
  if (!options) return within(path, options.error());
  auto bytes = files.read(path);
  if (!bytes) return bytes.error();

  std::vector<std::unique_ptr<TokenSource>> sources;
  if (!tokenizer_path && !path.ends_with(".jsonl")) {
    sources.push_back(std::make_unique<ByteTokens>(path, std::move(*bytes)));
    return make_token_dataset(std::move(sources), "bytes of text", *options, needs, 256);
  }
  std::optional<Tokenizer> tokenizer;
  if (tokenizer_path) {
    auto opened = Tokenizer::open(files, *tokenizer_path);
    if (!opened) return opened.error();
    tokenizer = std::move(*opened);
  }
  if (!options->end) options->end = end_of_documents(tokenizer ? &*tokenizer : nullptr);
  const Tokenizer* encoder = tokenizer ? &*tokenizer : nullptr;
  switch (kind_of_lines(path, bytes->text())) {
    case LineKind::examples:
      return make_example_dataset(path, bytes->text(), encoder, *options, needs);
    case LineKind::pairs:
      return make_pair_dataset(path, bytes->text(), encoder, *options, needs);
    case LineKind::sentences:
      return make_sentence_dataset(path, bytes->text(), encoder, *options, needs);
    case LineKind::documents:
      break;
  }
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
  return make_token_dataset(std::move(sources), "tokens", *options, needs,
                            tokenizer ? tokenizer->vocabulary() : 0);
}

Result<std::unique_ptr<Dataset>> open_shards(DataSpec spec, const DataNeeds& needs, Files& files) {
  const auto options = TextOptions::read(spec);
  if (auto status = spec.finish(); !status) return status.error();
  if (!options) return within(spec.name(), options.error());
  const auto paths = matching(spec.name(), files);
  if (!paths) return paths.error();
  std::vector<std::unique_ptr<TokenSource>> sources;
  for (const auto& path : *paths) {
    auto shard = TokenShard::open(files, path);
    if (!shard) return shard.error();
    sources.push_back(std::make_unique<ShardTokens>(path, std::move(*shard)));
  }
  return make_token_dataset(std::move(sources), "tokens", *options, needs, needs.vocabulary);
}

}  // namespace troupe::storage
