#include <algorithm>

#include "core/json.h"
#include "storage/tokenizer/tokenizer.h"

namespace troupe::storage {
namespace {

Value::Map byte_level(bool prefix_space) {
  return Value::Map{{"type", "ByteLevel", {}},
                    {"add_prefix_space", prefix_space, {}},
                    {"trim_offsets", true, {}},
                    {"use_regex", true, {}}};
}

}  // namespace

std::string byte_level_json(Value vocabulary, Value::List merges,
                            const std::vector<AddedToken>& added) {
  Value::List special;
  for (const auto& token : added)
    special.push_back(Value::Map{{"id", std::int64_t{token.id}, {}},
                                 {"content", token.text, {}},
                                 {"single_word", false, {}},
                                 {"lstrip", false, {}},
                                 {"rstrip", false, {}},
                                 {"normalized", false, {}},
                                 {"special", true, {}}});
  return to_json_lines(Value::Map{{"version", "1.0", {}},
                                  {"truncation", {}, {}},
                                  {"padding", {}, {}},
                                  {"added_tokens", std::move(special), {}},
                                  {"normalizer", {}, {}},
                                  {"pre_tokenizer", byte_level(false), {}},
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
                                              {"vocab", std::move(vocabulary), {}},
                                              {"merges", std::move(merges), {}}},
                                   {}}});
}

Result<std::string> json_of_gpt2(std::string_view vocab, std::string_view merges) {
  auto words = parse_json(vocab, {std::size_t{64} << 20, 4});
  if (!words) return within("vocab", words.error());
  if (!words->map()) return Error{"vocab: is no map of tokens to ids"};
  std::vector<AddedToken> added;
  // These files do not list special tokens. GPT-2 has this one.
  const std::string end = "<|endoftext|>";
  if (const auto* id = words->find(end); id && id->integer()) {
    added.emplace_back();
    added.back().text = end;
    added.back().id =
        static_cast<std::int32_t>(std::clamp<std::int64_t>(*id->integer(), -1, INT32_MAX));
  }
  Value::List pairs;
  for (bool is_first = true; !merges.empty(); is_first = false) {
    const auto stop = std::min(merges.find('\n'), merges.size());
    auto line = merges.substr(0, stop);
    merges.remove_prefix(std::min(stop + 1, merges.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !(is_first && line.starts_with("#version"))) pairs.emplace_back(line);
  }
  return byte_level_json(std::move(*words), std::move(pairs), added);
}

}  // namespace troupe::storage
