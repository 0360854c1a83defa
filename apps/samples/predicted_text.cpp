#include "apps/samples/predicted_text.h"

#include <algorithm>
#include <iterator>
#include <numbers>
#include <utility>
#include <vector>

#include "storage/tokenizer/text_bytes.h"

namespace troupe::apps {

Result<PredictedText> PredictedText::open(storage::Files& files, const std::string& tokenizer,
                                          std::optional<std::int32_t> ignore) {
  PredictedText text;
  text.ignore_ = ignore;
  if (tokenizer.empty()) return text;
  auto opened = storage::Tokenizer::open(files, tokenizer);
  if (!opened) return opened.error();
  text.tokenizer_ = std::move(*opened);
  return text;
}

Status PredictedText::add(const Tensor& input, const Tensor& target) {
  constexpr std::int32_t byte_values = 256;
  const auto inputs = input.numbers<std::int32_t>(), targets = target.numbers<std::int32_t>();
  const auto samples = static_cast<std::size_t>(input.shape()[0]);
  const std::size_t length = targets.size() / samples;
  for (std::size_t sample = 0; sample < samples; ++sample) {
    std::vector<std::int32_t> tokens;
    std::ranges::copy_if(targets.subspan(sample * length, length), std::back_inserter(tokens),
                         [&](std::int32_t token) { return token != ignore_; });
    if (!tokenizer_) {
      bytes_ += std::ranges::count_if(tokens, [](auto token) { return token < byte_values; });
      continue;
    }
    const auto bytes =
        storage::text_bytes(*tokenizer_, inputs[sample * (inputs.size() / samples)], tokens);
    if (!bytes) return bytes.error();
    bytes_ += *bytes;
  }
  return Done{};
}

std::optional<double> PredictedText::bits_per_byte(double nats) const {
  if (bytes_ == 0) return {};
  return nats / std::numbers::ln2 / static_cast<double>(bytes_);
}

}  // namespace troupe::apps
