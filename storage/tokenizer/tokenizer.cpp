#include "storage/tokenizer/tokenizer.h"

#include <functional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/json.h"
#include "storage/tokenizer/fields.h"

namespace troupe::storage {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr JsonLimits tokenizer_limits = {std::size_t{128} << 20, 16};

struct HashOfText {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};

/// The tokens of short pieces that occurred in a text. Most words of a text occur often.
class Seen {
 public:
  void encode(const TokenModel& model, std::string_view piece, Ids& out) {
    constexpr std::size_t longest = 32, most = 1 << 16;
    if (piece.size() > longest) return model.encode(piece, out);
    if (const auto at = ids_.find(piece); at != ids_.end()) {
      out.insert(out.end(), at->second.begin(), at->second.end());
      return;
    }
    const auto from = static_cast<std::ptrdiff_t>(out.size());
    model.encode(piece, out);
    if (ids_.size() < most) ids_.emplace(piece, Ids(out.begin() + from, out.end()));
  }

 private:
  std::unordered_map<std::string, Ids, HashOfText, std::equal_to<>> ids_;
};

}  // namespace

Result<Tokenizer> Tokenizer::read(std::string_view json) {
  const auto root = parse_json(json, tokenizer_limits);
  if (!root) return root.error();
  Fields fields(*root, "");
  fields.ignore("version");
  for (const auto* key : {"truncation", "padding"})
    if (fields.find(key))
      fields.fail(key, "is set, which cuts or fills texts; set it to null in the file");
  const auto* added = fields.find("added_tokens");
  const auto* normalizer = fields.find("normalizer");
  const auto* splitter = fields.find("pre_tokenizer");
  const auto* model = fields.find("model");
  const auto* processor = fields.find("post_processor");
  const auto* decoder = fields.find("decoder");
  if (!model) fields.fail("model", "is missing; the model of a tokenizer.json was wanted");
  if (auto status = fields.finish(); !status) return status.error();

  Tokenizer made;
  auto tokens = read_added_tokens(added, "added_tokens");
  if (!tokens) return tokens.error();
  made.added_ = std::move(*tokens);
  auto normalizers = read_normalizers(normalizer, "normalizer");
  if (!normalizers) return normalizers.error();
  made.normalizers_ = std::move(*normalizers);
  auto splitters = read_splitters(splitter, "pre_tokenizer");
  if (!splitters) return splitters.error();
  made.splitters_ = std::move(splitters->steps);
  const auto is_added = [&, texts = std::set<std::string_view>()](std::string_view text) mutable {
    if (texts.empty())
      for (const auto& token : made.added_) texts.insert(token.text);
    return texts.contains(text);
  };
  auto read = read_model(*model, "model", splitters->is_byte_level, is_added);
  if (!read) return read.error();
  made.model_ = std::move(read->model);
  made.kind_ = std::move(read->kind);
  made.merges_ = read->merges;
  if (read->splitter) made.splitters_.push_back(std::move(read->splitter));
  auto around = read_template(processor, "post_processor");
  if (!around) return around.error();
  made.around_ = std::move(*around);
  auto decoders = read_decoders(decoder, "decoder");
  if (!decoders) return decoders.error();
  made.decoders_ = std::move(*decoders);
  if (auto status = made.name_tokens(std::move(read->tokens)); !status) return status.error();
  if (auto status = made.check_template(); !status) return status.error();
  if (auto status = made.find_added(); !status) return status.error();
  made.json_ = std::string(json);
  return made;
}

Status Tokenizer::name_tokens(std::vector<std::string> of_model) {
  tokens_ = std::move(of_model);
  std::unordered_map<std::string_view, std::size_t> ids;
  for (std::size_t id = 0; id < tokens_.size(); ++id)
    if (!tokens_[id].empty()) ids.emplace(tokens_[id], id);
  // An added id may lie beyond those of the model, but not so far that the table becomes huge.
  const auto limit = tokens_.size() + added_.size() + 65'536;
  std::vector<std::pair<std::size_t, const AddedToken*>> beyond;
  for (std::size_t i = 0; i < added_.size(); ++i) {
    const auto& [text, number] = std::tie(added_[i].text, added_[i].id);
    const auto id = static_cast<std::size_t>(number);
    const auto place = "added_tokens[" + std::to_string(i) + "].id: is " + std::to_string(id);
    const auto known = ids.find(text);
    if (known != ids.end() && known->second != id)
      return Error{place + ", but \"" + text + "\" has the id " + std::to_string(known->second)};
    if (id >= limit) return Error{place + "; less than " + std::to_string(limit) + " was wanted"};
    if (id < tokens_.size() && !tokens_[id].empty() && tokens_[id] != text)
      return Error{place + ", which is the id of \"" + tokens_[id] + "\""};
    beyond.emplace_back(id, &added_[i]);
  }
  for (const auto& [id, token] : beyond) {
    if (id >= tokens_.size()) tokens_.resize(id + 1);
    if (!tokens_[id].empty() && tokens_[id] != token->text)
      return Error{"added_tokens: the id " + std::to_string(id) + " is given to two tokens"};
    tokens_[id] = token->text;
  }
  return Done{};
}

Status Tokenizer::check_template() const {
  for (const auto* side : {&around_.before, &around_.behind})
    for (const auto id : *side)
      if (id >= vocabulary() || tokens_[static_cast<std::size_t>(id)].empty())
        return Error{"post_processor: has the token " + std::to_string(id) +
                     ", which is not in the vocabulary"};
  return Done{};
}

Status Tokenizer::find_added() {
  std::vector<AddedToken> raw, changed;
  std::vector<std::string> raw_patterns, patterns;
  for (const auto& token : added_) {
    if (!token.is_normalized) {
      raw.push_back(token);
      raw_patterns.push_back(token.text);
      continue;
    }
    changed.push_back(token);
    patterns.push_back(normalized(normalizers_, token.text));
    if (patterns.back().empty())
      return Error{"added_tokens: \"" + token.text + "\" is empty once it is normalized"};
    tokens_[static_cast<std::size_t>(token.id)] = patterns.back();  // The library writes it so.
  }
  in_text_ = AddedTokens(std::move(raw), raw_patterns);
  in_normalized_ = AddedTokens(std::move(changed), patterns);
  return Done{};
}

void Tokenizer::split(std::size_t step, std::string_view text, bool is_first,
                      const TakePiece& take) const {
  if (text.empty()) return;
  if (step == splitters_.size()) return take(text, is_first);
  splitters_[step](text, is_first, [&](std::string_view piece, bool begins) {
    split(step + 1, piece, begins, take);
  });
}

Ids Tokenizer::encode(std::string_view text) const {
  Ids ids;
  Seen seen;
  const auto take_token = [&](std::int32_t id) { ids.push_back(id); };
  const TakePiece take_piece = [&](std::string_view piece, bool) {
    seen.encode(*model_, piece, ids);
  };
  const TakePiece take_normalized = [&](std::string_view part, bool is_first) {
    split(0, part, is_first, take_piece);
  };
  in_text_.split(
      text,
      [&](std::string_view part, bool is_first) {
        std::string changed;
        if (!normalizers_.empty()) part = changed = normalized(normalizers_, part);
        in_normalized_.split(
            part,
            [&](std::string_view inner, bool begins) {
              take_normalized(inner, is_first && begins);
            },
            take_token);
      },
      take_token);
  return ids;
}

Result<std::string> Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::vector<std::string> texts;
  texts.reserve(ids.size());
  for (const auto id : ids) {
    if (id < 0 || id >= vocabulary() || token(id).empty())
      return Error{"token " + std::to_string(id) + " is not in the vocabulary of " +
                   std::to_string(vocabulary())};
    texts.push_back(token(id));
  }
  for (const auto& decoder : decoders_) decoder.change(texts);
  std::string text;
  for (const auto& part : texts) text += part;
  return text;
}

const AddedToken* Tokenizer::end_of_text() const {
  for (const std::string_view text : {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"})
    for (const auto& added : added_)
      if (added.text == text) return &added;
  return nullptr;
}

}  // namespace troupe::storage
