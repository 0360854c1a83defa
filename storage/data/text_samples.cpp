#include "storage/data/text_samples.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/random.h"

namespace troupe::storage {
namespace {

using Tokens = std::vector<std::int32_t>;

/// Puts a value behind others up to a length.
Tokens padded_to(Tokens tokens, std::int64_t length, std::int32_t value) {
  tokens.resize(static_cast<std::size_t>(length), value);
  return tokens;
}

/// Each token's target is the next one of its document.
class NextTokens final : public SampleMaker {
 public:
  NextTokens(std::int64_t context, std::int32_t pad, std::int32_t ignore)
      : context_(context), pad_(pad), ignore_(ignore) {}

  std::int64_t width() const override { return context_; }
  bool wants_next() const override { return true; }
  std::vector<Field> offers() const override { return fields_of_text(context_); }
  Shape target() const override { return {context_}; }

  MadeSample make(const Window& window, const Place&) const override {
    auto made = sample_of_text(window, context_, pad_, ignore_);
    for (std::size_t i = 0; i + 1 < window.tokens.size(); ++i)
      made.target[i] = window.tokens[i + 1];
    for (const auto end : window.ends)
      if (end > 0) made.target[static_cast<std::size_t>(end) - 1] = ignore_;
    if (window.behind) made.target[window.tokens.size() - 1] = *window.behind;
    return made;
  }

 private:
  std::int64_t context_;
  std::int32_t pad_, ignore_;
};

/// Masked language modelling (Devlin et al. 2019): of the tokens that are chosen, 80 % become the
/// mask, 10 % another token, and 10 % stay. They alone are targets.
class MaskedTokens final : public SampleMaker {
 public:
  MaskedTokens(const TextOptions& options, std::int64_t context, std::int64_t classes,
               std::int32_t ignore)
      : options_(options), context_(context), classes_(classes), ignore_(ignore) {}

  std::int64_t width() const override { return context_; }
  std::vector<Field> offers() const override { return fields_of_text(context_); }
  Shape target() const override { return {context_}; }

  MadeSample make(const Window& window, const Place& place) const override {
    auto made = sample_of_text(window, context_, options_.pad.value_or(0), ignore_);
    for (std::size_t i = 0; i < window.tokens.size(); ++i) {
      const auto token = window.tokens[i];
      const auto words = position_words(options_.seed, place, static_cast<std::uint32_t>(i));
      if (is_special(token) || !(static_cast<double>(uniform(words[0])) < options_.mask)) continue;
      made.target[i] = token;
      const auto share = static_cast<double>(uniform(words[1]));
      if (share < 0.8)
        made.fields[0].second[i] = *options_.mask_id;
      else if (share < 0.9)
        made.fields[0].second[i] = other_token(words[2]);
    }
    return made;
  }

 private:
  bool is_special(std::int32_t token) const {
    return token == *options_.mask_id || token == options_.end ||
           (token >= options_.special_first && token < options_.special_end);
  }

  /// Draws a token that is not one of the special ones.
  std::int32_t other_token(std::uint32_t word) const {
    const auto special = static_cast<std::uint64_t>(options_.special_end - options_.special_first);
    const auto count = static_cast<std::uint64_t>(classes_) - special;
    const auto drawn = static_cast<std::int32_t>((word * count) >> 32);
    return drawn < options_.special_first ? drawn : drawn + static_cast<std::int32_t>(special);
  }

  TextOptions options_;
  std::int64_t context_, classes_;
  std::int32_t ignore_;
};

std::int32_t token_in(DataSpec& spec, std::string_view key, std::int32_t fallback) {
  return static_cast<std::int32_t>(spec.integer(key, fallback, 0, INT32_MAX));
}

std::optional<std::int32_t> token_if_given(DataSpec& spec, std::string_view key) {
  const std::int64_t token = spec.integer(key, -1, 0, INT32_MAX);
  return token < 0 ? std::nullopt : std::optional(static_cast<std::int32_t>(token));
}

}  // namespace

std::vector<Field> fields_of_text(std::int64_t context) {
  return {{"tokens", {context}, DType::i32},
          {"span", {context, 2}, DType::i32},
          {"positions", {context}, DType::i32},
          {"token_types", {context}, DType::i32}};
}

MadeSample sample_of_text(const Window& window, std::int64_t context, std::int32_t pad,
                          std::int32_t ignore) {
  const auto length = static_cast<std::size_t>(context);
  MadeSample made{{{"tokens", padded_to(window.tokens, context, pad)},
                   {"span", Tokens(2 * length, 0)},
                   {"positions", Tokens(length, 0)},
                   {"token_types", Tokens(length, 0)}},
                  Tokens(length, ignore)};
  if (window.second > 0)
    for (auto i = static_cast<std::size_t>(window.second); i < window.tokens.size(); ++i)
      made.fields[3].second[i] = 1;
  std::int64_t first = 0;
  for (const auto end : window.ends) {
    for (auto i = first; i < end; ++i) {
      const auto at = static_cast<std::size_t>(i);
      made.fields[1].second[2 * at] = static_cast<std::int32_t>(first);
      made.fields[1].second[2 * at + 1] = static_cast<std::int32_t>(end);
      made.fields[2].second[at] = static_cast<std::int32_t>(i - first);
    }
    first = end;
  }
  return made;
}

std::array<std::uint32_t, 4> position_words(std::uint64_t seed, const Place& place,
                                            std::uint32_t position) {
  const auto sample = static_cast<std::uint64_t>(place.sample);
  return philox({position, static_cast<std::uint32_t>(sample),
                 static_cast<std::uint32_t>(sample >> 32), static_cast<std::uint32_t>(place.pass)},
                {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

Result<TextOptions> TextOptions::read(DataSpec& spec) {
  TextOptions options;
  const auto documents = spec.text("documents");
  if (documents && *documents != "apart" && *documents != "padded")
    return Error{"documents = \"" + *documents +
                 "\"; apart (documents do not look into each other) or padded (a document is a "
                 "sample) was wanted"};
  if (documents) options.documents = *documents == "apart" ? Documents::apart : Documents::padded;
  options.end = token_if_given(spec, "end");
  options.pad = token_if_given(spec, "pad");
  options.mask = spec.number("mask", options.mask, 0.001, 0.9);
  options.mask_id = token_if_given(spec, "mask_id");
  options.special_first = token_in(spec, "special_first", options.special_first);
  const auto special_last = spec.integer("special_last", -1, 0, INT32_MAX - 1);
  options.special_end = static_cast<std::int32_t>(special_last + 1);
  options.corrupt = spec.number("corrupt", options.corrupt, 0.001, 0.9);
  options.mean = spec.number("mean", options.mean, 1, 1000);
  options.start = token_in(spec, "start", options.start);
  options.sentinel = token_if_given(spec, "sentinel");
  options.seed = static_cast<std::uint64_t>(spec.integer("seed", 1, 0, INT64_MAX));
  if (options.special_end == 0) options.special_first = 0;
  if (options.special_first > options.special_end)
    return Error{"special_first = " + std::to_string(options.special_first) +
                 " is behind special_last = " + std::to_string(special_last)};
  if (options.mask > 0 && options.corrupt > 0)
    return Error{"mask and corrupt are two ways to make targets; give one of them"};
  if (options.corrupt > 0 && options.documents == Documents::apart)
    return Error{
        "documents = \"apart\" does not go with corrupt, because a span may lie in two "
        "documents; use documents=padded"};
  return options;
}

std::int64_t TextOptions::least_vocabulary() const {
  return std::max({std::int64_t{mask_id.value_or(0)} + 1, std::int64_t{special_end},
                   std::int64_t{sentinel.value_or(0)} + 1});
}

std::int64_t TextOptions::least_with_padding() const {
  return std::max(std::int64_t{pad.value_or(0)}, std::int64_t{start}) + 1;
}

void MadeSample::write(const SampleShape& shape, const SampleSpans& to) const {
  const auto copy = [](const Tokens& from, std::span<std::byte> into) {
    const auto bytes = std::as_bytes(std::span(from));
    assert(bytes.size() == into.size());
    std::memcpy(into.data(), bytes.data(), bytes.size());
  };
  for (std::size_t i = 0; i < to.inputs.size(); ++i) {
    const auto& name = i == 0 ? shape.input_name : shape.more[i - 1].name;
    const auto found =
        std::ranges::find_if(fields, [&](const auto& field) { return field.first == name; });
    assert(found != fields.end());
    copy(found->second, to.inputs[i]);
  }
  copy(target, to.target);
}

std::int64_t length_of(const DataNeeds& needs, std::string_view field, std::int64_t fallback) {
  for (const auto& need : needs.inputs)
    if (need.field.name == field && need.field.shape.rank() > 0) return need.field.shape[0];
  return fallback;
}

std::vector<std::string> names_of(const std::vector<Field>& fields) {
  std::vector<std::string> names;
  for (const auto& field : fields) names.push_back(field.name);
  return names;
}

SampleShape shape_for(const DataNeeds& needs, const std::vector<Field>& offered,
                      const Shape& target) {
  SampleShape shape{offered[0].shape, offered[0].type, target, DType::i32, offered[0].name, {}};
  for (std::size_t i = 0; i < needs.inputs.size(); ++i) {
    const auto found = std::ranges::find(offered, needs.inputs[i].field.name, &Field::name);
    if (found == offered.end()) continue;  // open_dataset() says what is missing.
    if (i == 0) {
      shape.input = found->shape;
      shape.input_name = found->name;
    } else {
      shape.more.push_back(*found);
    }
  }
  return shape;
}

Result<std::unique_ptr<SampleMaker>> make_sample_maker(const TextOptions& options,
                                                       const DataNeeds& needs,
                                                       std::int64_t classes) {
  const auto context = length_of(needs, "tokens", needs.context);
  const auto ignore = needs.ignore.value_or(-1);
  if (options.corrupt > 0) return make_span_corrupter(options, needs, classes);
  if (options.mask == 0)
    return std::unique_ptr<SampleMaker>(
        std::make_unique<NextTokens>(context, options.pad.value_or(0), ignore));
  if (!options.mask_id)
    return Error{"mask = " + std::to_string(options.mask).substr(0, 5) +
                 ", but mask_id, the token of the mask, is missing: mask=0.15&mask_id=103"};
  if (*options.mask_id >= classes || options.special_end > classes)
    return Error{"mask_id = " + std::to_string(*options.mask_id) + ", special_last = " +
                 std::to_string(options.special_end - 1) + ", but there are " +
                 std::to_string(classes) + " tokens; set model.vocab to more than both"};
  if (options.special_end - options.special_first == classes)
    return Error{"all " + std::to_string(classes) + " tokens are special ones, so none is masked"};
  return std::unique_ptr<SampleMaker>(
      std::make_unique<MaskedTokens>(options, context, classes, ignore));
}

}  // namespace troupe::storage
