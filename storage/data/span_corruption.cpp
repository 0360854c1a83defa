// Span corruption (Raffel et al. 2020): spans of a text are cut out, and a decoder restores them.
#include <algorithm>
#include <cmath>

#include "core/json.h"
#include "storage/data/text_samples.h"

namespace troupe::storage {
namespace {

using Tokens = std::vector<std::int32_t>;

/// The numbers of tokens in a text, and of spans in it, that are cut out.
struct Noise {
  std::int64_t tokens = 0;
  std::int64_t spans = 0;
};

Noise noise_in(std::int64_t length, const TextOptions& options) {
  if (length < 2) return {};
  const auto rounded = [](double number) { return std::llrint(number); };
  Noise noise;
  noise.tokens = std::clamp<std::int64_t>(rounded(static_cast<double>(length) * options.corrupt), 1,
                                          length - 1);
  const auto spans = rounded(static_cast<double>(noise.tokens) / options.mean);
  noise.spans = std::clamp<std::int64_t>(spans, 1, std::min(noise.tokens, length - noise.tokens));
  return noise;
}

/// Draws the lengths of so many parts of a whole, each at least 1. All divisions are equally
/// likely.
std::vector<std::int64_t> parts_of(std::int64_t whole, std::int64_t parts, std::uint64_t seed,
                                   const Place& place, std::uint32_t first_word) {
  std::vector<std::int64_t> lengths;
  std::int64_t begin = 0, to_choose = parts - 1;
  for (std::int64_t cut = 1; cut < whole && to_choose > 0; ++cut) {
    const auto word = position_words(seed, place, first_word + static_cast<std::uint32_t>(cut))[0];
    const auto left = static_cast<std::uint64_t>(whole - cut);
    if ((word * left) >> 32 >= static_cast<std::uint64_t>(to_choose)) continue;
    lengths.push_back(cut - begin);
    begin = cut;
    --to_choose;
  }
  lengths.push_back(whole - begin);
  return lengths;
}

class SpanCorrupter final : public SampleMaker {
 public:
  SpanCorrupter(const TextOptions& options, const PairForm& form, std::int64_t width)
      : options_(options), form_(form), width_(width) {}

  std::int64_t width() const override { return width_; }
  std::vector<Field> offers() const override { return form_.offers(); }
  Shape target() const override { return {form_.target}; }

  MadeSample make(const Window& window, const Place& place) const override {
    Tokens tokens = window.tokens;
    if (!tokens.empty() && tokens.back() == *options_.end) tokens.pop_back();
    const Noise noise = noise_in(static_cast<std::int64_t>(tokens.size()), options_);
    Tokens read, written;
    if (noise.spans > 0)
      cut(tokens, noise, place, read, written);
    else
      read = std::move(tokens);  // Too short to cut anything out.
    read.push_back(*options_.end);
    if (!written.empty()) written.push_back(*options_.end);
    return form_.make(std::move(read), std::move(written));
  }

 private:
  /// Text and cut spans follow each other, the text first. A sentinel stands for each span.
  void cut(const Tokens& tokens, const Noise& noise, const Place& place, Tokens& read,
           Tokens& written) const {
    const auto length = static_cast<std::int64_t>(tokens.size());
    constexpr std::uint32_t words_of_text = 1u << 31;
    const auto spans = parts_of(noise.tokens, noise.spans, options_.seed, place, 0);
    const auto texts =
        parts_of(length - noise.tokens, noise.spans, options_.seed, place, words_of_text);
    auto from = tokens.begin();
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const auto sentinel = *options_.sentinel - static_cast<std::int32_t>(i);
      read.insert(read.end(), from, from + texts[i]);
      read.push_back(sentinel);
      from += texts[i];
      written.push_back(sentinel);
      written.insert(written.end(), from, from + spans[i]);
      from += spans[i];
    }
  }

  TextOptions options_;
  PairForm form_;
  std::int64_t width_;
};

}  // namespace

PairForm PairForm::of(const TextOptions& options, const DataNeeds& needs) {
  return {.source = length_of(needs, "source", needs.context),
          .target = needs.target.rank() == 1 ? needs.target[0] : 1,
          .start = options.start,
          .pad = options.pad.value_or(0),
          .ignore = needs.ignore.value_or(-1)};
}

std::vector<Field> PairForm::offers() const {
  return {{"source", {source}, DType::i32},
          {"span", {source, 2}, DType::i32},
          {"decoder_tokens", {target}, DType::i32},
          {"memory_span", {target, 2}, DType::i32}};
}

MadeSample PairForm::make(Tokens read, Tokens written) const {
  const auto rows = static_cast<std::size_t>(source), made_rows = static_cast<std::size_t>(target);
  const auto read_rows = std::min(read.size(), rows),
             written_rows = std::min(written.size(), made_rows);
  read.resize(rows, pad);
  written.resize(made_rows, ignore);
  Tokens span(2 * rows, 0), memory_span(2 * made_rows, 0), given(made_rows, pad);
  for (std::size_t i = 0; i < read_rows; ++i)
    span[2 * i + 1] = static_cast<std::int32_t>(read_rows);
  for (std::size_t i = 0; i < written_rows; ++i) {
    memory_span[2 * i + 1] = static_cast<std::int32_t>(read_rows);
    given[i] = i == 0 ? start : written[i - 1];
  }
  return {{{"source", std::move(read)},
           {"span", std::move(span)},
           {"decoder_tokens", std::move(given)},
           {"memory_span", std::move(memory_span)}},
          std::move(written)};
}

Result<std::unique_ptr<SampleMaker>> make_span_corrupter(const TextOptions& given,
                                                         const DataNeeds& needs,
                                                         std::int64_t classes) {
  TextOptions options = given;
  if (needs.inputs.empty())
    return Error{
        "corrupt makes source, span, decoder_tokens and memory_span, but the model takes "
        "one input"};
  if (!options.end)
    return Error{"corrupt needs end, the token that ends a text: corrupt=0.15&end=1"};
  if (!options.sentinel) options.sentinel = static_cast<std::int32_t>(classes - 1);
  const PairForm form = PairForm::of(options, needs);
  // The longest text of which source and target have room for what is left, and for the end.
  const auto fits = [&](std::int64_t length) {
    const Noise noise = noise_in(length, options);
    return length - noise.tokens + noise.spans + 1 <= form.source;
  };
  std::int64_t width = 1;
  while (fits(width + 1)) ++width;
  const Noise noise = noise_in(width, options);
  if (noise.spans == 0)
    return Error{"corrupt leaves no text in " + std::to_string(form.source) + " source tokens"};
  if (noise.tokens + noise.spans + 1 > form.target)
    return Error{"corrupt = " + shortest(options.corrupt) + ", mean = " + shortest(options.mean) +
                 " make " + std::to_string(noise.tokens + noise.spans + 1) + " targets of " +
                 std::to_string(form.source) + " source tokens, and the model has room for " +
                 std::to_string(form.target)};
  const std::int64_t lowest = *options.sentinel - noise.spans + 1;
  const bool is_end_one = *options.end >= lowest && *options.end <= *options.sentinel;
  if (*options.sentinel >= classes || lowest < 0 || is_end_one)
    return Error{"the sentinels are the tokens from " + std::to_string(lowest) + " to " +
                 std::to_string(*options.sentinel) + ", and the text has " +
                 std::to_string(classes) + " tokens, the end of which is " +
                 std::to_string(*options.end) + "; set sentinel to the highest of them"};
  return std::unique_ptr<SampleMaker>(std::make_unique<SpanCorrupter>(options, form, width));
}

}  // namespace troupe::storage
