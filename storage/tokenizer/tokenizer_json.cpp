#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/json.h"
#include "storage/tokenizer/tokenizer.h"
#include "storage/tokenizer/words.h"

namespace troupe::storage {
namespace {

constexpr JsonLimits limits = {std::size_t{64} << 20, 16};
/// The most unused ids, so that a single huge id cannot make a huge table.
constexpr std::int64_t most_unused = 65'536;

std::string in_quotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

/// A builder of the token table from a map of printable words to ids.
class Vocabulary {
 public:
  explicit Vocabulary(std::size_t entries)
      : limit_(static_cast<std::int64_t>(entries) + most_unused) {}

  Status add(std::string_view word, const Value* id, std::string bytes) {
    if (!id || !id->integer() || *id->integer() < 0 || *id->integer() >= limit_)
      return Error{"the id of " + in_quotes(word) + " is no integer from 0 to " +
                   std::to_string(limit_ - 1)};
    const auto at = static_cast<std::size_t>(*id->integer());
    if (at >= tokens_.size()) tokens_.resize(at + 1);
    if (!tokens_[at].empty() && tokens_[at] != bytes)
      return Error{"the id " + std::to_string(at) + " is given to two tokens"};
    ids_.emplace(bytes, static_cast<std::int32_t>(at));
    tokens_[at] = std::move(bytes);
    return Done{};
  }
  Status add_printable(const Value::Entry& entry) {
    std::string bytes;
    if (!from_printable(entry.key, bytes))
      return Error{"the token " + in_quotes(entry.key) +
                   " has a character that stands for no byte; byte-level BPE was wanted"};
    if (bytes.empty()) return Error{"there is a token without a character"};
    return add(entry.key, &entry.value, std::move(bytes));
  }
  /// Returns the id of a printable word, if that is a token.
  std::optional<std::int32_t> id_of(std::string_view word) const {
    std::string bytes;
    if (!from_printable(word, bytes)) return {};
    return id_of_bytes(bytes);
  }
  std::optional<std::int32_t> id_of_bytes(const std::string& bytes) const {
    const auto at = ids_.find(bytes);
    if (at == ids_.end()) return {};
    return at->second;
  }
  const std::string& token(std::int32_t id) const { return tokens_[static_cast<std::size_t>(id)]; }
  std::vector<std::string> take() { return std::move(tokens_); }

 private:
  std::int64_t limit_;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::int32_t> ids_;
};

Result<TokenizerTables::Merge> make_merge(const Vocabulary& vocabulary, std::string_view left,
                                          std::string_view right) {
  const auto left_id = vocabulary.id_of(left);
  const auto right_id = vocabulary.id_of(right);
  if (!left_id || !right_id)
    return Error{"the merge of " + in_quotes(left) + " and " + in_quotes(right) +
                 " has a part that is no token"};
  const auto merged =
      vocabulary.id_of_bytes(vocabulary.token(*left_id) + vocabulary.token(*right_id));
  if (!merged)
    return Error{"the merge of " + in_quotes(left) + " and " + in_quotes(right) +
                 " gives no token"};
  return TokenizerTables::Merge{*left_id, *right_id, *merged};
}

/// Parses "left right".
Result<TokenizerTables::Merge> split_merge(const Vocabulary& vocabulary, std::string_view pair) {
  const auto blank = pair.find(' ');
  if (blank == std::string_view::npos || pair.find(' ', blank + 1) != std::string_view::npos)
    return Error{"the merge " + in_quotes(pair) + " is not two tokens with a blank between"};
  return make_merge(vocabulary, pair.substr(0, blank), pair.substr(blank + 1));
}

Result<TokenizerTables::Merge> read_merge(const Vocabulary& vocabulary, const Value& value) {
  if (value.text()) return split_merge(vocabulary, *value.text());
  const auto* pair = value.list();
  if (!pair || pair->size() != 2 || !(*pair)[0].text() || !(*pair)[1].text())
    return Error{"a merge is neither a text nor a list of two texts"};
  return make_merge(vocabulary, *(*pair)[0].text(), *(*pair)[1].text());
}

/// Returns whether a setting is absent or has its neutral value, the only one implemented.
bool is_unset(const Value* value) {
  if (!value || value->is_null()) return true;
  if (value->boolean()) return !*value->boolean();
  if (value->text()) return value->text()->empty();
  return value->is_number() && value->number() == 0;
}

std::string type_of(const Value* value) {
  const auto* type = value ? value->find("type") : nullptr;
  return type && type->text() ? *type->text() : "none";
}

/// Returns an error if the file asks to split or spell texts in a way that is not implemented.
Status check_settings(const Value& root, const Value& model) {
  // Old files omit the type and are BPE.
  if (const auto type = type_of(&model); type != "BPE" && type != "none")
    return Error{"the model is " + type + "; only byte-level BPE is read"};
  if (!is_unset(root.find("normalizer")))
    return Error{"it normalizes texts (" + type_of(root.find("normalizer")) +
                 "); only tokenizers that do not are read"};
  const auto* splitter = root.find("pre_tokenizer");
  const auto* rule = splitter ? splitter->find("use_regex") : nullptr;
  if (type_of(splitter) != "ByteLevel" || (rule && (!rule->boolean() || !*rule->boolean())))
    return Error{"it splits texts by " + type_of(splitter) +
                 "; only ByteLevel with GPT-2's rule is read"};
  for (const std::string_view key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix",
                                     "byte_fallback", "ignore_merges"})
    if (!is_unset(model.find(key)))
      return Error{"model." + std::string(key) + " is set to " + to_json(*model.find(key)) +
                   "; only tokenizers without it are read"};
  return Done{};
}

Result<AddedToken> read_added(const Value& value, Vocabulary& vocabulary) {
  const auto* content = value.find("content");
  if (!content || !content->text() || content->text()->empty())
    return Error{"an added token has no content"};
  for (const std::string_view key : {"lstrip", "rstrip", "single_word"})
    if (!is_unset(value.find(key)))
      return Error{"the added token " + in_quotes(*content->text()) + " has " + std::string(key) +
                   "; only tokens that are found as they stand are read"};
  const auto* id = value.find("id");
  auto added = vocabulary.add(*content->text(), id, *content->text());
  if (!added) return added.error();
  return AddedToken{*content->text(), static_cast<std::int32_t>(*id->integer())};
}

}  // namespace

Result<TokenizerTables> parse_tokenizer_json(std::string_view text) {
  const auto root = parse_json(text, limits);
  if (!root) return root.error();
  const auto* model = root->find("model");
  const auto* words = model ? model->find("vocab") : nullptr;
  const auto* merges = model ? model->find("merges") : nullptr;
  if (!words || !words->map() || !merges || !merges->list())
    return Error{
        "has no model with a map \"vocab\" and a list \"merges\"; a tokenizer.json of "
        "byte-level BPE was wanted"};
  if (auto status = check_settings(*root, *model); !status) return status.error();

  TokenizerTables tables;
  Vocabulary vocabulary(words->map()->size());
  if (const auto* list = root->find("added_tokens"); list && list->list())
    for (const auto& value : *list->list()) {
      auto token = read_added(value, vocabulary);
      if (!token) return token.error();
      tables.added.push_back(std::move(*token));
    }
  std::set<std::string_view> added;
  for (const auto& token : tables.added) added.insert(token.text);
  for (const auto& entry : *words->map()) {
    // The vocabulary spells an added token as it is, not byte by byte.
    if (added.contains(entry.key)) continue;
    if (auto status = vocabulary.add_printable(entry); !status) return status.error();
  }
  for (const auto& value : *merges->list()) {
    const auto merge = read_merge(vocabulary, value);
    if (!merge) return merge.error();
    tables.merges.push_back(*merge);
  }
  tables.tokens = vocabulary.take();
  const auto* prefix = root->find("pre_tokenizer")->find("add_prefix_space");
  if (!is_unset(prefix)) tables.prefix_space = TokenizerTables::PrefixSpace::added;
  return tables;
}

Result<TokenizerTables> parse_vocab_and_merges(std::string_view vocab, std::string_view merges) {
  const auto words = parse_json(vocab, limits);
  if (!words) return within("vocab", words.error());
  if (!words->map()) return Error{"vocab: is no map of tokens to ids"};
  TokenizerTables tables;
  Vocabulary vocabulary(words->map()->size());
  for (const auto& entry : *words->map()) {
    if (auto status = vocabulary.add_printable(entry); !status)
      return within("vocab", status.error());
    // These files do not list special tokens. GPT-2 has this one.
    if (entry.key == "<|endoftext|>")
      tables.added.push_back({entry.key, static_cast<std::int32_t>(*entry.value.integer())});
  }
  for (std::int64_t number = 1; !merges.empty(); ++number) {
    const auto end = std::min(merges.find('\n'), merges.size());
    auto line = merges.substr(0, end);
    merges.remove_prefix(std::min(end + 1, merges.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const auto merge = split_merge(vocabulary, line);
    if (!merge) return within("merges:" + std::to_string(number), merge.error());
    tables.merges.push_back(*merge);
  }
  tables.tokens = vocabulary.take();
  return tables;
}

std::string to_tokenizer_json(const Tokenizer& tokenizer) {
  const auto& tables = tokenizer.tables();
  const auto token = [&](std::int32_t id) {
    return to_printable(tables.tokens[static_cast<std::size_t>(id)]);
  };
  std::map<std::int32_t, const AddedToken*> added_by_id;
  for (const auto& added : tables.added) added_by_id.emplace(added.id, &added);
  Value::Map words;
  for (std::int32_t id = 0; id < tokenizer.vocabulary(); ++id) {
    if (const auto added = added_by_id.find(id); added != added_by_id.end())
      words.push_back({added->second->text, std::int64_t{id}, {}});
    else if (!tables.tokens[static_cast<std::size_t>(id)].empty())
      words.push_back({token(id), std::int64_t{id}, {}});
  }
  Value::List merges;
  for (const auto& merge : tables.merges)
    merges.push_back(token(merge.left) + " " + token(merge.right));
  Value::List added;
  for (const auto& [id, special] : added_by_id)
    added.push_back(Value::Map{{"id", std::int64_t{id}, {}},
                               {"content", special->text, {}},
                               {"single_word", false, {}},
                               {"lstrip", false, {}},
                               {"rstrip", false, {}},
                               {"normalized", false, {}},
                               {"special", true, {}}});
  const auto byte_level = [&](bool prefix_space) {
    return Value::Map{{"type", "ByteLevel", {}},
                      {"add_prefix_space", prefix_space, {}},
                      {"trim_offsets", true, {}},
                      {"use_regex", true, {}}};
  };
  const bool prefix = tables.prefix_space == TokenizerTables::PrefixSpace::added;
  return to_json_lines(Value::Map{{"version", "1.0", {}},
                                  {"truncation", {}, {}},
                                  {"padding", {}, {}},
                                  {"added_tokens", std::move(added), {}},
                                  {"normalizer", {}, {}},
                                  {"pre_tokenizer", byte_level(prefix), {}},
                                  {"post_processor", {}, {}},
                                  {"decoder", byte_level(true), {}},
                                  {"model",
                                   Value::Map{{"type", "BPE", {}},
                                              {"dropout", {}, {}},
                                              {"unk_token", {}, {}},
                                              {"continuing_subword_prefix", {}, {}},
                                              {"end_of_word_suffix", {}, {}},
                                              {"fuse_unk", false, {}},
                                              {"byte_fallback", false, {}},
                                              {"ignore_merges", false, {}},
                                              {"vocab", std::move(words), {}},
                                              {"merges", std::move(merges), {}}},
                                   {}}});
}

}  // namespace troupe::storage
