#include "models/description/option.h"

#include <algorithm>
#include <array>

#include "core/json.h"

namespace troupe::models {
namespace {

bool within_bounds(const Option& option, double number) {
  return number >= option.least && number <= option.most;
}

const std::vector<Option>& common_options() {
  using enum Option::Type;
  static const std::vector<Option> options{
      {.name = "vocab",
       .least = 2,
       .most = 1 << 24,
       .help = "Vocabulary size; \"auto\" takes it from the data."},
      {.name = "context",
       .least = 1,
       .most = 1 << 20,
       .help = "Context length: tokens per sample."},
      {.name = "width", .least = 1, .most = 1 << 17, .help = "Hidden size (n_embd)."},
      {.name = "layers", .least = 1, .most = 4096, .help = "Number of transformer blocks."},
      {.name = "heads",
       .least = 1,
       .most = 4096,
       .help = "Attention heads per block; model.width must be divisible by it."},
      {.name = "kv_heads",
       .least = 0,
       .most = 4096,
       .help = "Key and value heads (grouped-query attention); 0 means as many as heads."},
      {.name = "ffn",
       .least = 0,
       .most = 1 << 20,
       .help = "Hidden size of the feed-forward networks; 0 means 8/3 of width, rounded up to a "
               "multiple of 256."},
      {.name = "rope_theta",
       .type = number,
       .fallback = 10000.0,
       .least = 1,
       .most = 1e9,
       .help = "Base of the rotary position embedding (RoPE theta)."},
      {.name = "rope_type",
       .type = choice,
       .fallback = "default",
       .among = {"default", "linear", "llama3", "yarn"},
       .help = "How rotary frequencies change for contexts longer than those of the first "
               "training."},
      {.name = "rope_factor",
       .type = number,
       .fallback = 1.0,
       .least = 1e-6,
       .most = 1e6,
       .help = "With another rope_type: what low frequencies are divided by."},
      {.name = "rope_low",
       .type = number,
       .fallback = 1.0,
       .least = 0,
       .most = 1e6,
       .help = "With rope_type llama3: frequencies with fewer turns in rope_context are low "
               "(low_freq_factor)."},
      {.name = "rope_high",
       .type = number,
       .fallback = 4.0,
       .least = 0,
       .most = 1e6,
       .help = "With rope_type llama3: frequencies with more turns in rope_context stay "
               "(high_freq_factor)."},
      {.name = "rope_context",
       .fallback = 8192,
       .least = 1,
       .most = 1 << 24,
       .help = "With rope_type llama3 or yarn: context length of the first training."},
      {.name = "rope_fast",
       .type = number,
       .fallback = 32.0,
       .least = 1e-3,
       .most = 1e6,
       .help = "With rope_type yarn: pairs with more turns in rope_context stay (beta_fast)."},
      {.name = "rope_slow",
       .type = number,
       .fallback = 1.0,
       .least = 1e-3,
       .most = 1e6,
       .help = "With rope_type yarn: pairs with fewer turns in rope_context are low (beta_slow)."},
      {.name = "rope_stretch",
       .type = number,
       .fallback = 0.0,
       .least = 0,
       .most = 1e3,
       .help = "With rope_type yarn: factor on rotated numbers (attention_factor); 0 means 0.1 "
               "log(rope_factor) + 1."},
      {.name = "head_width",
       .fallback = 0,
       .least = 0,
       .most = 1 << 16,
       .help = "Width of a head; 0 means width divided by heads."},
      {.name = "qkv_bias",
       .type = boolean,
       .fallback = false,
       .help = "Biases in the projections to queries, keys and values (Qwen2)."},
      {.name = "qk_norm",
       .type = boolean,
       .fallback = false,
       .help = "RMSNorm of each head of queries and keys (Qwen3)."},
      {.name = "window",
       .fallback = 0,
       .least = 0,
       .most = 1 << 24,
       .help = "Sliding window: the last positions that each one sees; 0 means all."},
      {.name = "apart",
       .type = boolean,
       .fallback = false,
       .help = "Documents of a sample do not see each other, and positions begin anew with each. "
               "The data says where they are."},
      {.name = "norm_eps",
       .type = number,
       .least = 1e-12,
       .most = 1,
       .help = "Epsilon of RMSNorm."},
      {.name = "tied", .type = boolean, .help = "Share input and output embeddings."},
      {.name = "image", .least = 1, .most = 8192, .help = "Image height and width, in pixels."},
      {.name = "patch", .least = 1, .most = 8192, .help = "Patch height and width, in pixels."},
      {.name = "channels", .fallback = 3, .least = 1, .most = 4096, .help = "Image channels."},
      {.name = "dims",
       .type = integers,
       .least = 1,
       .most = 1 << 20,
       .help = "Sizes of the input, of each hidden layer and of the output (number of classes)."},
      {.name = "widths",
       .type = integers,
       .least = 1,
       .most = 1 << 16,
       .help = "Channels of each group of blocks. Every group after the first halves the image's "
               "height and width."},
      {.name = "blocks",
       .type = integers,
       .least = 1,
       .most = 4096,
       .help = "Residual blocks per group."},
      {.name = "classes", .least = 2, .most = 1 << 24, .help = "Number of classes."},
      {.name = "dropout",
       .type = number,
       .fallback = 0.0,
       .least = 0,
       .most = 0.99,
       .help = "Dropout probability."},
  };
  return options;
}

}  // namespace

const Option* find_common_option(std::string_view name) {
  const auto& options = common_options();
  const auto found = std::ranges::find(options, name, &Option::name);
  return found == options.end() ? nullptr : &*found;
}

bool fits(const Option& option, const Value& value) {
  switch (option.type) {
    case Option::Type::integer:
      return value.integer() && within_bounds(option, value.number());
    case Option::Type::number:
      return value.is_number() && within_bounds(option, value.number());
    case Option::Type::boolean:
      return value.boolean() != nullptr;
    case Option::Type::choice:
      return value.text() && std::ranges::count(option.among, *value.text()) > 0;
    case Option::Type::text:
      return value.text() != nullptr;
    case Option::Type::integers:
      return value.list() &&
             std::all_of(value.list()->begin(), value.list()->end(), [&](const Value& item) {
               return item.integer() && within_bounds(option, item.number());
             });
  }
  return false;
}

Value without_later(std::span<const Option> options, Value table) {
  std::erase_if(*table.map(), [&](const Value::Entry& entry) {
    const auto option = std::ranges::find(options, entry.key, &Option::name);
    return option != options.end() && option->is_later &&
           to_json(option->fallback) == to_json(entry.value);
  });
  return table;
}

Result<Value> complete(std::span<const Option> options, const Value& given) {
  Value table = given;
  for (const auto& option : options) {
    const Value* value = table.find(option.name);
    if (!value && option.fallback.is_null())
      return Error{"model." + option.name + " is missing: " + option.help};
    if (!value) value = &table.set(option.name, option.fallback);
    if (!fits(option, *value))
      return Error{"model." + option.name + " is " + std::string(describe(value->kind())) +
                   " out of bounds or of the wrong type: " + option.help};
  }
  return table;
}

}  // namespace troupe::models
