#include "models/kinds/options.h"

#include <cassert>

namespace troupe::models {
namespace {

const Value& present(const Value& options, std::string_view key) {
  const Value* value = options.find(key);
  assert(value && "the table of options is not complete");
  return *value;
}

}  // namespace

std::int64_t integer(const Value& options, std::string_view key) {
  const auto* value = present(options, key).integer();
  assert(value);
  return *value;
}

double number(const Value& options, std::string_view key) { return present(options, key).number(); }

bool boolean(const Value& options, std::string_view key) {
  const auto* value = present(options, key).boolean();
  assert(value);
  return *value;
}

std::vector<std::int64_t> integers(const Value& options, std::string_view key) {
  const auto* list = present(options, key).list();
  assert(list);
  std::vector<std::int64_t> numbers;
  for (const auto& value : *list) {
    assert(value.integer());
    numbers.push_back(*value.integer());
  }
  return numbers;
}

Status check_divides(const Value& options, std::string_view divisor, std::string_view number) {
  const auto small = integer(options, divisor), large = integer(options, number);
  if (large % small == 0) return Done{};
  auto below = small, above = small;
  while (large % below != 0) --below;
  while (above < large && large % above != 0) ++above;
  const auto said = [&](std::string_view key, std::int64_t value) {
    return "model." + std::string(key) + " = " + std::to_string(value);
  };
  std::string nearest = std::to_string(below);
  if (large % above == 0) nearest += ", " + std::to_string(above);
  return Error{said(number, large) + " is not divisible by " + said(divisor, small) +
               "; nearest: " + nearest};
}

namespace option {

Option vocab() {
  return {.name = "vocab",
          .least = 2,
          .most = 1 << 24,
          .help = "Vocabulary size; \"auto\" takes it from the data."};
}
Option context() {
  return {
      .name = "context", .least = 1, .most = 1 << 20, .help = "Context length: tokens per sample."};
}
Option width() {
  return {.name = "width", .least = 1, .most = 1 << 17, .help = "Hidden size (n_embd)."};
}
Option layers() {
  return {.name = "layers", .least = 1, .most = 4096, .help = "Number of transformer blocks."};
}
Option heads() {
  return {.name = "heads",
          .least = 1,
          .most = 4096,
          .help = "Attention heads per block; model.width must be divisible by it."};
}
Option classes() {
  return {.name = "classes", .least = 2, .most = 1 << 24, .help = "Number of classes."};
}
Option channels() {
  return {.name = "channels", .fallback = 3, .least = 1, .most = 4096, .help = "Image channels."};
}
Option dropout(std::string_view help) {
  return {.name = "dropout",
          .type = Option::Type::number,
          .fallback = 0.0,
          .least = 0,
          .most = 0.99,
          .help = std::string(help)};
}

}  // namespace option
}  // namespace troupe::models
