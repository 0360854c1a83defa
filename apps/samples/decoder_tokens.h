#pragma once

#include <cstdint>
#include <string>

#include "apps/samples/text_generator.h"
#include "apps/samples/trained_model.h"
#include "core/result.h"

namespace troupe::apps {

/// The tokens with which a decoder begins and ends a text.
struct DecoderTokens {
  std::int32_t start = 0;
  Tokens ends;
};

/// Returns those with which a decoder was trained: what the options `start` and `end` of the data
/// say, or else the end of the script's documents.
Result<DecoderTokens> decoder_tokens_of(const std::string& data, const Script& script);

/// Returns those of imported weights: decoder_start_token_id and eos_token_id, which
/// generation_config.json has, or else config.json, or else the end of the script's documents.
Result<DecoderTokens> decoder_tokens_of(const TrainedModel& model, const Script& script);

}  // namespace troupe::apps
