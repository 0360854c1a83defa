#include "apps/samples/decoder_tokens.h"

#include <optional>

#include "core/json.h"
#include "storage/data/data_spec.h"

namespace troupe::apps {
namespace {

void end_as_documents_do(const Script& script, DecoderTokens& tokens) {
  if (!tokens.ends.empty()) return;
  if (const auto end = script.end()) tokens.ends = {*end};
}

/// Returns a token or the list of tokens that a key names. It has none if the key is not there, or
/// null.
Result<Tokens> tokens_at(const Value& config, const std::string& key, std::int64_t vocabulary) {
  const Value* value = config.find(key);
  if (!value || value->is_null()) return Tokens();
  Tokens tokens;
  for (const auto& one : value->list() ? *value->list() : Value::List{*value}) {
    const auto* token = one.integer();
    if (!token || *token < 0 || *token >= vocabulary)
      return Error{key + ": found " + to_json(one) + ", wanted a token below " +
                   std::to_string(vocabulary)};
    tokens.push_back(static_cast<std::int32_t>(*token));
  }
  return tokens;
}

}  // namespace

Result<DecoderTokens> decoder_tokens_of(const std::string& data, const Script& script) {
  auto spec = storage::DataSpec::parse(data);
  if (!spec) return spec.error();
  DecoderTokens tokens;
  const auto most = script.vocabulary() - 1;
  tokens.start = static_cast<std::int32_t>(spec->integer("start", 0, 0, most));
  if (const auto end = spec->integer("end", -1, 0, most); end >= 0)
    tokens.ends = {static_cast<std::int32_t>(end)};
  end_as_documents_do(script, tokens);
  return tokens;
}

Result<DecoderTokens> decoder_tokens_of(const TrainedModel& model, const Script& script) {
  DecoderTokens tokens;
  std::optional<std::int32_t> start;
  for (const char* name : {"generation_config.json", "config.json"}) {
    const auto* text = model.text_beside(name);
    if (!text) continue;
    const auto config = parse_json(*text);
    if (!config) return within(name, config.error());
    const auto starts = tokens_at(*config, "decoder_start_token_id", script.vocabulary());
    if (!starts) return within(name, starts.error());
    if (!start && !starts->empty()) start = starts->front();
    const auto ends = tokens_at(*config, "eos_token_id", script.vocabulary());
    if (!ends) return within(name, ends.error());
    if (tokens.ends.empty()) tokens.ends = *ends;
  }
  tokens.start = start.value_or(0);
  end_as_documents_do(script, tokens);
  return tokens;
}

}  // namespace troupe::apps
