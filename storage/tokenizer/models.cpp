#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>

#include "storage/tokenizer/byte_pairs.h"
#include "storage/tokenizer/byte_tokens.h"
#include "storage/tokenizer/fields.h"
#include "storage/tokenizer/steps.h"
#include "storage/tokenizer/unigram.h"
#include "storage/tokenizer/word_piece.h"
#include "storage/tokenizer/words.h"

namespace troupe::storage {
namespace {

/// The most unused ids, so that a single huge id cannot make a huge table.
constexpr std::int64_t most_unused = 65'536;
/// The limits of tokens that are found in a text byte by byte. They bound memory, and the time for
/// each byte of a text.
constexpr std::size_t longest_token = 1'024;
constexpr std::size_t most_bytes = std::size_t{32} << 20;

using IsAdded = std::function<bool(std::string_view)>;

std::string quoted_token(std::string_view text) { return "\"" + std::string(text) + "\""; }

/// The tokens of a model, by id and by text.
class Vocabulary {
 public:
  explicit Vocabulary(std::string place) : place_(std::move(place)) {}

  /// Reads a map from tokens to ids.
  Status read(const Value::Map& words) {
    const auto limit = static_cast<std::int64_t>(words.size()) + most_unused;
    for (const auto& [word, id, position] : words) {
      if (!id.integer() || *id.integer() < 0 || *id.integer() >= limit)
        return Error{place_ + ": the id of " + quoted_token(word) + " is no integer from 0 to " +
                     std::to_string(limit - 1)};
      if (auto status = add(word, *id.integer()); !status) return status;
    }
    return Done{};
  }
  Status add(const std::string& word, std::int64_t id) {
    const auto at = static_cast<std::size_t>(id);
    if (word.empty()) return Error{place_ + ": there is a token without a character"};
    if (at >= tokens_.size()) tokens_.resize(at + 1);
    if (!tokens_[at].empty())
      return Error{place_ + ": the id " + std::to_string(at) + " is given to two tokens"};
    if (!ids_.emplace(word, static_cast<std::int32_t>(at)).second)
      return Error{place_ + ": the token " + quoted_token(word) + " occurs twice"};
    tokens_[at] = word;
    return Done{};
  }
  std::optional<std::int32_t> id_of(const std::string& word) const {
    const auto at = ids_.find(word);
    if (at == ids_.end()) return {};
    return at->second;
  }
  const std::vector<std::string>& tokens() const { return tokens_; }

  /// Returns a tree of the tokens. Refuses tokens that would make texts slow.
  Result<Trie> trie() const {
    std::vector<std::pair<std::string, std::int32_t>> words;
    std::size_t bytes = 0;
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      if (tokens_[id].empty()) continue;
      if (tokens_[id].size() > longest_token || (bytes += tokens_[id].size()) > most_bytes)
        return Error{place_ + ": the token with the id " + std::to_string(id) + " has " +
                     std::to_string(tokens_[id].size()) +
                     " bytes; tokens of at most 1024 bytes, and 32 MiB in all, are taken"};
      words.emplace_back(tokens_[id], static_cast<std::int32_t>(id));
    }
    return Trie(std::move(words));
  }

 private:
  std::string place_;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::int32_t> ids_;
};

/// Returns the ids of the tokens "<0x00>" to "<0xFF>".
Result<std::array<std::int32_t, 256>> read_byte_ids(const Vocabulary& vocabulary,
                                                    const std::string& place) {
  std::array<std::int32_t, 256> ids{};
  for (int byte = 0; byte < 256; ++byte) {
    const auto token = token_of_byte(static_cast<unsigned char>(byte));
    const auto id = vocabulary.id_of(token);
    if (!id) return Error{place + ": is set, but the vocabulary lacks " + quoted_token(token)};
    ids[static_cast<std::size_t>(byte)] = *id;
  }
  return ids;
}

/// Reads a merge: "left right", or a list of the two.
Result<BytePairTables::Merge> read_merge(const Vocabulary& vocabulary, const Value& value) {
  std::string left, right;
  if (const auto* text = value.text()) {
    const auto blank = text->find(' ');
    if (blank == text->npos || text->find(' ', blank + 1) != text->npos)
      return Error{"is " + quoted_token(*text) + "; two tokens with a blank between were wanted"};
    left = text->substr(0, blank);
    right = text->substr(blank + 1);
  } else {
    const auto* pair = value.list();
    if (!pair || pair->size() != 2 || !(*pair)[0].text() || !(*pair)[1].text())
      return Error{"is neither a text nor a list of two texts"};
    left = *(*pair)[0].text();
    right = *(*pair)[1].text();
  }
  const auto left_id = vocabulary.id_of(left), right_id = vocabulary.id_of(right);
  const auto both = quoted_token(left) + " and " + quoted_token(right);
  if (!left_id || !right_id) return Error{"joins " + both + ", of which one is no token"};
  const auto merged = vocabulary.id_of(left + right);
  if (!merged) return Error{"joins " + both + ", which gives no token"};
  return BytePairTables::Merge{*left_id, *right_id, *merged};
}

/// Returns the tokens as bytes.
Result<std::vector<std::string>> byte_tokens(const std::vector<std::string>& tokens,
                                             const std::string& place, const IsAdded& is_added) {
  std::vector<std::string> bytes(tokens.size());
  for (std::size_t id = 0; id < tokens.size(); ++id)
    if (is_added(tokens[id]))
      bytes[id].clear();  // Words never become this token.
    else if (!from_printable(tokens[id], bytes[id]))
      return Error{place + ": the token " + quoted_token(tokens[id]) +
                   " has a character that stands for no byte; the pre_tokenizer is ByteLevel"};
  return bytes;
}

/// Returns the splitter that cuts a text before visible blanks.
Splitter before_blanks() {
  static constexpr std::string_view blank = "\xe2\x96\x81";
  return [](std::string_view text, bool is_first, const TakePiece& take) {
    std::size_t begin = 0;
    while (begin < text.size()) {
      auto end = begin;
      while (text.substr(end).starts_with(blank)) end += blank.size();
      end = std::min(text.find(blank, end), text.size());
      take(text.substr(begin, end - begin), is_first && begin == 0);
      begin = end;
    }
  };
}

Result<ReadModel> read_byte_pairs(Fields& fields, bool is_byte_level, const IsAdded& is_added) {
  BytePairTables tables;
  for (const auto* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
    fields.must_be_unset(key);
  tables.is_byte_level = is_byte_level;
  tables.ignore_merges = fields.boolean("ignore_merges", false);
  tables.byte_fallback = fields.boolean("byte_fallback", false) && !is_byte_level;
  tables.fuse_unknown = fields.boolean("fuse_unk", false);
  const auto unknown = fields.optional_text("unk_token");
  const auto* words = fields.map("vocab");
  const auto* merges = fields.list("merges");
  if (auto status = fields.finish(); !status) return status.error();

  Vocabulary vocabulary(fields.place_of("vocab"));
  if (auto status = vocabulary.read(*words); !status) return status.error();
  if (unknown && !is_byte_level) {
    const auto id = vocabulary.id_of(*unknown);
    if (!id)
      return Error{fields.place_of("unk_token") + ": is " + quoted_token(*unknown) +
                   ", which is not in the vocabulary"};
    tables.unknown = *id;
  }
  for (std::size_t i = 0; i < merges->size(); ++i) {
    const auto merge = read_merge(vocabulary, (*merges)[i]);
    if (!merge)
      return within(fields.place_of("merges") + "[" + std::to_string(i) + "]", merge.error());
    tables.merges.push_back(*merge);
  }
  tables.tokens = vocabulary.tokens();
  if (is_byte_level) {
    auto bytes = byte_tokens(vocabulary.tokens(), fields.place_of("vocab"), is_added);
    if (!bytes) return bytes.error();
    tables.tokens = std::move(*bytes);
  }
  auto made = BytePairs::make(std::move(tables));
  if (!made) return Error{fields.place_of(made.error().text)};
  ReadModel read{*made,
                 vocabulary.tokens(),
                 is_byte_level ? "byte-level BPE" : "BPE",
                 static_cast<std::int64_t>(merges->size()),
                 {}};
  if ((*made)->parts_before_blanks()) read.splitter = before_blanks();
  return read;
}

Result<ReadModel> read_word_piece(Fields& fields) {
  constexpr std::int64_t most_characters = 1'000'000;
  WordPiece::Settings settings;
  settings.prefix = fields.text("continuing_subword_prefix", "##");
  settings.longest_word = fields.integer("max_input_chars_per_word", 0, most_characters, 100);
  const auto unknown = fields.text("unk_token", "[UNK]");
  const auto* words = fields.map("vocab");
  if (auto status = fields.finish(); !status) return status.error();
  Vocabulary vocabulary(fields.place_of("vocab"));
  if (auto status = vocabulary.read(*words); !status) return status.error();
  const auto id = vocabulary.id_of(unknown);
  if (!id)
    return Error{fields.place_of("unk_token") + ": is " + quoted_token(unknown) +
                 ", which is not in the vocabulary"};
  settings.unknown = *id;
  auto trie = vocabulary.trie();
  if (!trie) return trie.error();
  return ReadModel{std::make_shared<WordPiece>(std::move(*trie), std::move(settings)),
                   vocabulary.tokens(),
                   "WordPiece",
                   0,
                   {}};
}

Result<ReadModel> read_unigram(Fields& fields) {
  constexpr double most_score = 1e9;
  Unigram::Settings settings;
  const bool byte_fallback = fields.boolean("byte_fallback", false);
  settings.fuse_unknown = fields.boolean("fuse_unk", true);
  const auto* rows = fields.list("vocab");
  const auto count = rows ? static_cast<std::int64_t>(rows->size()) : 0;
  settings.unknown =
      static_cast<std::int32_t>(fields.integer("unk_id", 0, std::max<std::int64_t>(0, count - 1)));
  if (rows && rows->empty()) fields.fail("vocab", "is empty; a token was wanted");
  if (auto status = fields.finish(); !status) return status.error();
  Vocabulary vocabulary(fields.place_of("vocab"));
  for (std::int64_t id = 0; id < count; ++id) {
    const auto* row = (*rows)[static_cast<std::size_t>(id)].list();
    if (!row || row->size() != 2 || !(*row)[0].text() || !(*row)[1].is_number() ||
        !(std::abs((*row)[1].number()) <= most_score))
      return Error{fields.place_of("vocab") + "[" + std::to_string(id) +
                   "]: is no list of a token and a score from -1e9 to 1e9"};
    if (auto status = vocabulary.add(*(*row)[0].text(), id); !status) return status.error();
    settings.scores.push_back((*row)[1].number());
  }
  if (byte_fallback) {
    auto ids = read_byte_ids(vocabulary, fields.place_of("byte_fallback"));
    if (!ids) return ids.error();
    settings.byte_ids = *ids;
  }
  settings.unknown_text = vocabulary.tokens()[static_cast<std::size_t>(settings.unknown)];
  auto trie = vocabulary.trie();
  if (!trie) return trie.error();
  return ReadModel{std::make_shared<Unigram>(std::move(*trie), std::move(settings)),
                   vocabulary.tokens(),
                   "Unigram",
                   0,
                   {}};
}

}  // namespace

Result<ReadModel> read_model(const Value& value, const std::string& place, bool is_byte_level,
                             const IsAdded& is_added) {
  Fields fields(value, place);
  // Old files omit the type. What has merges is BPE.
  const auto type = fields.text("type", value.find("merges") ? "BPE" : "WordPiece");
  if (type == "BPE") return read_byte_pairs(fields, is_byte_level, is_added);
  if (is_byte_level)
    fields.fail("type", "is \"" + type + "\"; with a pre_tokenizer ByteLevel BPE was wanted");
  else if (type == "WordPiece")
    return read_word_piece(fields);
  else if (type == "Unigram")
    return read_unigram(fields);
  else
    fields.fail("type", "is \"" + type + "\"; known are BPE, Unigram and WordPiece");
  return fields.finish().error();
}

}  // namespace troupe::storage
