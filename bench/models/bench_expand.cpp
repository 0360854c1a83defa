// Measures what descriptions of models cost: the reading of each that the program comes with, and
// the expansion of a model with 48 blocks, or as many as its options allow. Prints a line for each
// and the sum, in milliseconds of processor time.

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <utility>
#include <variant>

#include "config/model_kinds.h"
#include "config/toml/toml.h"

using namespace troupe;

namespace {

/// Returns the least processor time of a few calls, in milliseconds.
template <class Body>
double milliseconds(Body body) {
  double least = 1e9;
  for (int i = 0; i < 20; ++i) {
    const auto begin = std::clock();
    body();
    least = std::min(least, 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return least;
}

/// Returns options of a model with 48 blocks: those that a kind needs, in sizes that fit together.
Result<Value> options_of(const models::ModelKind& kind) {
  constexpr std::array<std::pair<const char*, std::int64_t>, 13> sizes{{{"layers", 48},
                                                                        {"width", 768},
                                                                        {"heads", 12},
                                                                        {"kv_heads", 4},
                                                                        {"ffn", 1024},
                                                                        {"vocab", 100},
                                                                        {"context", 32},
                                                                        {"classes", 10},
                                                                        {"image", 32},
                                                                        {"patch", 8},
                                                                        {"channels", 3},
                                                                        {"experts", 8},
                                                                        {"length", 32}}};
  Value given = Value::Map{};
  for (const auto& option : kind.options()) {
    const auto* size = std::ranges::find(sizes, option.name, &decltype(sizes)::value_type::first);
    const bool is_size = size != sizes.end();
    if (is_size && (option.fallback.is_null() || option.name == "layers"))
      given.set(option.name, size->second);
    if (option.name == "dims") given.set(option.name, Value::List(49, Value(16)));
    if (option.name == "widths") given.set(option.name, Value::List(4, Value(16)));
    if (option.name == "blocks") given.set(option.name, Value::List(4, Value(12)));
  }
  return models::complete(kind.options(), given);
}

}  // namespace

int main() {
  double all_read = 0, all_expanded = 0;
  std::printf("%-12s %10s %14s %8s\n", "", "read, ms", "48 blocks, ms", "units");
  for (const auto& kind : config::model_kinds()) {
    const auto text = config::model_kind_text(kind.name());
    const double read = milliseconds([&] {
      const auto tree = config::parse_toml(text);
      if (!tree || !std::holds_alternative<models::ModelKind>(models::ModelKind::read(*tree)))
        std::exit(1);
    });
    const auto options = options_of(kind);
    const auto model = options ? kind.build(*options) : Result<models::Model>(options.error());
    if (!model) {
      std::fprintf(stderr, "%s: %s\n", kind.name().c_str(), model.error().text.c_str());
      return 1;
    }
    const double expanded = milliseconds([&] { (void)kind.build(*options); });
    std::printf("%-12s %10.2f %14.2f %8zu\n", kind.name().c_str(), read, expanded,
                model->units.size());
    all_read += read;
    all_expanded += expanded;
  }
  std::printf("%-12s %10.2f %14.2f\n", "together", all_read, all_expanded);
  return 0;
}
