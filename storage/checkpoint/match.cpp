#include "storage/checkpoint/match.h"

#include <algorithm>
#include <map>

#include "core/json.h"

namespace troupe::storage {
namespace {

constexpr std::size_t most_named = 5;

/// A list of differences that names the first few.
class Differences {
 public:
  void add(const std::string& what) {
    if (++count_ <= most_named) text_ += "\n  " + what;
  }
  Status status(const std::string& about) const {
    if (count_ == 0) return Done{};
    const auto more = count_ > most_named
                          ? "\n  and " + std::to_string(count_ - most_named) + " more"
                          : std::string();
    return Error{about + ":" + text_ + more};
  }

 private:
  std::size_t count_ = 0;
  std::string text_;
};

/// Compares numbers as they are written: 1.0 is 1.
void compare(const std::string& key, const Value* found, const Value* wanted, Differences& out) {
  if (found && wanted && found->map() && wanted->map()) {
    const auto below = [&](const std::string& name) {
      return key.empty() ? name : key + "." + name;
    };
    for (const auto& entry : *wanted->map())
      compare(below(entry.key), found->find(entry.key), &entry.value, out);
    for (const auto& entry : *found->map())
      if (!wanted->find(entry.key)) compare(below(entry.key), &entry.value, nullptr, out);
    return;
  }
  const auto said = [](const Value* value) { return value ? to_json(*value) : "not set"; };
  if (said(found) != said(wanted))
    out.add((key.empty() ? "" : key + ": ") + "the checkpoint has " + said(found) + ", this run " +
            said(wanted));
}

}  // namespace

Status match_tensors(std::span<const TensorView> found, std::span<const WantedTensor> wanted) {
  Differences differences;
  std::map<std::string_view, const Shape*> there;
  for (const auto& tensor : found) there.emplace(tensor.name, &tensor.shape);
  for (const auto& [name, shape] : wanted) {
    const auto at = there.find(name);
    if (at == there.end()) {
      differences.add("\"" + name + "\" is missing; the model needs it as " + to_string(shape));
      continue;
    }
    if (*at->second != shape)
      differences.add("\"" + name + "\" is " + to_string(*at->second) + "; the model needs it as " +
                      to_string(shape));
    there.erase(at);
  }
  for (const auto& [name, shape] : there)
    differences.add("\"" + std::string(name) + "\" " + to_string(*shape) + " has no place in it");
  return differences.status("the tensors are not those of the model");
}

Status match_model(const Manifest& manifest, const Value& model) {
  Differences differences;
  compare("", &manifest.model, &model, differences);
  return differences.status("the checkpoint is of another model");
}

Status match_recipe(const Manifest& manifest, const Value& recipe) {
  if (manifest.recipe_digest == digest_of(to_json(recipe))) return Done{};
  Differences differences;
  compare("", &manifest.recipe, &recipe, differences);
  return differences.status("the checkpoint was made by another recipe");
}

}  // namespace troupe::storage
