#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/memory/tensor.h"
#include "core/result.h"
#include "storage/files/files.h"
#include "storage/tokenizer/tokenizer.h"

namespace troupe::apps {

/// Counts the bytes of the text that a model has predicted.
class PredictedText {
 public:
  /// `tokenizer` is the path of the text's tokenizer; empty: its tokens are its bytes. Targets that
  /// are `ignore` do not count.
  static Result<PredictedText> open(storage::Files& files, const std::string& tokenizer,
                                    std::optional<std::int32_t> ignore);

  /// Adds samples. A target is the token behind that of the input at its place.
  Status add(const Tensor& input, const Tensor& target);

  /// Returns the bits per byte if all targets together have this loss; nothing if there is no byte.
  std::optional<double> bits_per_byte(double nats) const;

 private:
  std::optional<storage::Tokenizer> tokenizer_;
  std::optional<std::int32_t> ignore_;
  std::int64_t bytes_ = 0;
};

}  // namespace troupe::apps
