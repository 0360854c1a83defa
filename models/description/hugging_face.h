#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/value.h"
#include "models/description/fault.h"
#include "models/description/formula.h"
#include "models/description/option.h"
#include "models/description/preset.h"

namespace troupe::models {

/// How folders of Hugging Face describe models of a kind: an entry of `huggingface` in a
/// description. config/huggingface/ reads and writes config.json with it. A path names a key of
/// config.json: "rms_norm_eps", or "rope_parameters.factor" for a key in a table. A list of equal
/// numbers counts as that number: [224, 224].
struct HuggingFace {
  /// The library whose folders an entry is about. transformers names a type by `model_type`, and
  /// timm a preset by `architecture`.
  enum class Library : std::uint8_t { transformers, timm };
  struct Type {
    std::string name;          // As model_type says it, or the preset.
    std::string architecture;  // The class of a language model. Empty with timm.
    Value options{};           // The options of the preset, a table. Null with transformers.
  };
  /// An option, and the keys of config.json that give it.
  struct Key {
    std::string option;
    std::vector<std::string> paths;  // The first that is there counts.
    Value absent{};  // If none is there. Null: that of the preset, or one must be there.
    std::vector<std::string> types;  // The types that have the key. None: all.
    /// Our value for a text of theirs, if they differ: { relu = false, gated-gelu = true }.
    std::vector<std::pair<std::string, Value>> texts;
  };
  /// A value that a key of config.json must have if it is there. `i` is the index in a list, of
  /// which each item must have it.
  struct Must {
    std::string path;
    std::vector<Formula> values;  // One of them. `none` is null.
  };

  Library library = Library::transformers;
  std::vector<Type> types;            // With timm: the presets of the kind.
  std::vector<std::string> prefixes;  // Prefixes of names of tensors that ours lack.
  /// Last words of names that older files have in place of ours: gamma, weight.
  std::vector<std::pair<std::string, std::string>> renamed;
  std::vector<std::string> leave;  // Tensors with nothing learned: "*.attn.bias".
  /// Tensors that files may have twice, and the names that ours have. Both have equal numbers.
  std::vector<std::pair<std::string, std::string>> copies;
  std::vector<Key> keys;
  std::vector<std::pair<std::string, Value>> fixed;  // Options that a type has: a table for each.
  std::vector<Must> must;
  /// Keys that change no result, and the type that has them. Without one: all types.
  std::vector<std::pair<std::string, std::string>> harmless;
  /// The values that defaults of options mean: { head_width = "width / heads" }.
  std::vector<std::pair<std::string, Formula>> usual;
  /// Options whose keys must be there if the formula holds.
  std::vector<std::pair<std::string, Formula>> needs;

  /// Returns whether models of a type have this key.
  static bool has(const Key& key, std::string_view type);
};

/// Reads `huggingface` of a description. Options must exist.
std::optional<Fault> read_hugging_face(const Value& tree, const std::vector<Option>& options,
                                       std::span<const Preset> presets,
                                       std::vector<HuggingFace>& into);

}  // namespace troupe::models
