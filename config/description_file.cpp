#include "config/description_file.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "config/model_kinds.h"
#include "config/own_model.h"
#include "config/toml/diagnostics.h"
#include "config/toml/toml.h"
#include "core/text.h"

namespace troupe::config {
namespace {

Error rendered(Diagnostic diagnostic, const Sources& sources) {
  Diagnostics found;
  found.add(std::move(diagnostic));
  std::string text = found.render(sources);
  while (text.ends_with('\n')) text.pop_back();
  return {std::move(text)};
}

}  // namespace

Result<DescriptionFile> DescriptionFile::open(const std::string& name, const ReadText& read) {
  DescriptionFile file;
  if (!name.ends_with(".toml")) {
    const auto preset = find_preset(name);
    const auto* kind = preset ? preset.kind : find_model_kind(name);
    if (!kind) {
      std::string known;
      for (const auto& other : model_kinds()) {
        known += other.name() + ", ";
        for (const auto& one : other.presets()) known += one.name + ", ";
      }
      return Error{"error: \"" + name + "\" is no kind of model; there are " + known +
                   "and descriptions in files that end in .toml"};
    }
    file.kind_ = *kind;
    if (preset) file.preset_ = preset.preset->options;
    return file;
  }
  auto text = read(name);
  if (!text) return Error{"error: " + text.error().text};
  auto tree = parse_toml(*text);
  if (!tree) return Error{name + ":" + tree.error().text};
  file.sources_.add(name, *std::move(text), *tree);
  auto kind = models::ModelKind::read(*tree);
  if (const auto* fault = std::get_if<models::Fault>(&kind))
    return rendered(diagnostic_of(*fault, file.sources_), file.sources_);
  file.kind_ = std::get<models::ModelKind>(std::move(kind));
  return file;
}

Result<Value> DescriptionFile::given(const std::vector<std::string>& settings) const {
  Diagnostics found;
  Document document;
  document.tree = preset_;
  apply_settings(settings, document, found);
  if (!found.ok()) return Error{found.render(document.sources)};
  std::vector<std::string_view> names;
  for (const auto& option : kind_->options()) names.emplace_back(option.name);
  for (const auto& entry : *document.tree.map()) {
    if (std::ranges::count(names, entry.key) > 0) continue;
    const auto near = nearest(entry.key, names);
    return Error{"error: " + kind_->name() + " has no option '" + entry.key + "'" +
                 (near.empty() ? "" : "; did you mean '" + std::string(near) + "'?")};
  }
  return std::move(document.tree);
}

Result<std::vector<std::string>> DescriptionFile::missing(
    const std::vector<std::string>& settings) const {
  const auto table = given(settings);
  if (!table) return table.error();
  std::vector<std::string> names;
  for (const auto& option : kind_->options())
    if (option.fallback.is_null() && !table->find(option.name)) names.push_back(option.name);
  return names;
}

Result<models::Model> DescriptionFile::build(const std::vector<std::string>& settings) const {
  const auto table = given(settings);
  if (!table) return table.error();
  const auto options = models::complete(kind_->options(), *table);
  if (!options) return within("error", options.error());
  auto built = kind_->expand(*options);
  if (const auto* fault = std::get_if<models::Fault>(&built)) {
    if (fault->at.path.empty()) return Error{"error: " + fault->message};
    return rendered(diagnostic_of(*fault, sources_), sources_);
  }
  return std::get<models::Model>(std::move(built));
}

}  // namespace troupe::config
