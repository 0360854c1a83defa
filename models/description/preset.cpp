#include "models/description/preset.h"

#include <algorithm>
#include <utility>

#include "models/description/read_options.h"

namespace troupe::models {
namespace {

constexpr std::size_t most_presets = 256;
constexpr int most_alike = 8;

Fault fault_of_preset(const Value& at, std::string path, std::string what) {
  return {.at = {at.position, std::move(path)}, .message = std::move(what)};
}

class PresetReader {
 public:
  PresetReader(const Value& table, std::span<const Option> options)
      : table_(table), options_(options) {}

  std::optional<Fault> read(const Value::Entry& entry, std::vector<Preset>& into) const {
    const auto path = "preset." + entry.key;
    if (!is_name(entry.key))
      return fault_of_preset(
          entry.value, path,
          "the name of a preset is a lower-case word of letters, digits and underscores");
    Preset preset{.name = entry.key, .options = Value::Map{}};
    if (auto wrong = add(entry.value, path, 0, preset.options)) return wrong;
    into.push_back(std::move(preset));
    return {};
  }

 private:
  /// Adds the options of a preset, and of those that it begins with, unless they are there.
  std::optional<Fault> add(const Value& given, const std::string& path, int depth,
                           Value& into) const {
    if (!given.map())
      return fault_of_preset(given, path,
                             "a preset is a table of options: { layers = 12, width = 768 }");
    for (const auto& [key, value, position] : *given.map()) {
      if (key == "like") continue;
      const auto option = std::ranges::find(options_, key, &Option::name);
      if (option == options_.end())
        return fault_of_preset(value, path, "the description has no option '" + key + "'");
      if (!fits(*option, value))
        return fault_of_preset(value, path, "'" + key + "' does not fit its type and bounds");
      if (!into.find(key)) into.set(key, without_places(value));
    }
    const Value* like = given.find("like");
    if (!like) return {};
    const Value* other = like->text() ? table_.find(*like->text()) : nullptr;
    if (!other) return fault_of_preset(*like, path, "like names no preset of this description");
    if (depth >= most_alike)
      return fault_of_preset(*like, path,
                             "presets are like each other at most " + std::to_string(most_alike) +
                                 " times; does one begin with itself?");
    return add(*other, "preset." + *like->text(), depth + 1, into);
  }

  const Value& table_;
  std::span<const Option> options_;
};

}  // namespace

std::optional<Fault> read_presets(const Value& tree, std::span<const Option> options,
                                  std::vector<Preset>& into) {
  const Value* table = tree.find("preset");
  if (!table) return {};
  if (!table->map()) return fault_of_preset(*table, "preset", "preset is a table of tables");
  if (table->map()->size() > most_presets)
    return fault_of_preset(*table, "preset",
                           "at most " + std::to_string(most_presets) + " presets");
  const PresetReader reader(*table, options);
  for (const auto& entry : *table->map())
    if (auto wrong = reader.read(entry, into)) return wrong;
  return {};
}

}  // namespace troupe::models
