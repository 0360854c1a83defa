#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "apps/samples/trained_model.h"
#include "core/memory/tensor.h"
#include "models/model.h"

namespace troupe::apps {

/// Returns whether a model has an encoder, which reads a text, and a decoder, which writes another
/// one: its inputs are those of sources with targets (storage::PairForm).
bool is_encoder_decoder(const models::Model& model);

/// A text that a model's encoder has read. The units before the decoder compute it once.
class EncodedText {
 public:
  /// `source` has at least one token, and at most as many as the encoder reads. The model must
  /// outlive this.
  EncodedText(TrainedModel& model, std::vector<std::int32_t> source);

  /// Returns the logits of the token behind each one that the decoder has written, [1, n, classes].
  /// `written` begins with the token with which decoders begin, and has at most as many as the
  /// decoder writes.
  Tensor behind(const std::vector<std::int32_t>& written);

  /// Returns whether the decoder can go on with a text without reading all of it again.
  bool can_continue() const { return can_continue_; }
  /// Begins to write a text of at most so many tokens.
  models::ContinuedText begin_text(std::int64_t most) const { return decoder_.begin_text(most); }
  /// Returns the rows of behind() for the tokens that come next in the text, with the same bits.
  Tensor continue_text(const std::vector<std::int32_t>& next, models::ContinuedText& text);

 private:
  /// Returns what the decoder's first unit receives with these tokens of its text.
  models::Bundle with_tokens(const std::vector<std::int32_t>& tokens) const;
  Tensor input_of(const models::SampleForm::Input& input,
                  const std::vector<std::int32_t>& written) const;
  Tensor tokens_of(const std::vector<std::int32_t>& tokens) const;
  Tensor spans_of(std::size_t rows) const;

  TrainedModel& model_;
  std::vector<std::int32_t> source_;
  TrainedUnits decoder_;
  models::Bundle encoded_;    // The bundle that the decoder's first unit receives.
  std::vector<int> numbers_;  // The numbers of its kept values.
  bool can_continue_ = false;
};

}  // namespace troupe::apps
