#include "config/huggingface/model_folder.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/huggingface/config_json.h"
#include "config/schema/dotted.h"
#include "core/json.h"

namespace troupe::config {
namespace {

constexpr std::string_view key = "model.from";
constexpr std::string_view accept = "accept";

/// Returns the table of our model that a config.json describes.
Result<Value> model_in(const std::string& path, const ReadText& read,
                       std::span<const models::ModelKind> kinds,
                       const std::vector<std::string>& accepted) {
  const auto text = read(path);
  if (!text) return text.error();
  const auto config = parse_json(*text);
  if (!config) return Error{path + ":" + config.error().text};
  auto model = model_of_hugging_face(kinds, *config, accepted);
  if (!model) return within(path, model.error());
  return model;
}

/// Returns `model.accept`, the keys of config.json that are not checked, or nothing if it is no
/// list of texts.
std::optional<std::vector<std::string>> accepted_in(const Value& model) {
  std::vector<std::string> keys;
  const Value* list = model.find(accept);
  if (!list) return keys;
  if (!list->list()) return {};
  for (const auto& item : *list->list()) {
    if (!item.text()) return {};
    keys.push_back(*item.text());
  }
  return keys;
}

}  // namespace

void read_model_folder(const ReadText& read, std::span<const models::ModelKind> kinds,
                       Document& document, Diagnostics& found) {
  Value* model = document.tree.find("model");
  const Value* from = model ? model->find("from") : nullptr;
  const Value* alone = model && !from ? model->find(accept) : nullptr;
  if (alone) {
    found.add({.key = "model.accept",
               .message = "model.accept is for the config.json of model.from, which is not there",
               .position = alone->position});
    document.whole = false;
  }
  if (!from) return;
  const Position position = from->position;
  const auto fail = [&](const std::string& why) {
    found.add(
        {.key = std::string(key), .message = std::string(key) + ": " + why, .position = position});
    document.whole = false;
  };
  if (!from->text() || from->text()->empty())
    return fail("found " + to_json(*from) + ", wanted a folder with config.json and weights");
  std::string folder =
      (folder_at(document.sources, position) / *from->text()).lexically_normal().string();
  // A name without a slash is no folder to model.init.
  if (folder.find('/') == folder.npos) folder = "./" + folder;
  const auto accepted = accepted_in(*model);
  if (!accepted)
    return fail("model.accept is " + to_json(*model->find(accept)) +
                ", wanted a list of keys of config.json such as [\"mlp_bias\"]");
  auto described =
      model_in(folder + (folder.ends_with('/') ? "" : "/") + "config.json", read, kinds, *accepted);
  if (!described) return fail(described.error().text);
  put_everything_at(position, *described);

  const Value* kind = model->find("kind");
  if (kind && *kind != *described->find("kind"))
    return fail("the model there is of the kind " + to_json(*described->find("kind")) +
                ", but model.kind is " + to_json(*kind) + "; leave one of them out");
  for (auto& [name, value, at] : *described->map())
    if (!model->find(name)) model->set(name, std::move(value));
  if (!model->find("init")) {
    Value init = folder;
    init.position = position;
    model->set("init", std::move(init));
  }
  std::erase_if(*model->map(), [](const Value::Entry& entry) {
    return entry.key == "from" || entry.key == accept;
  });
}

void refuse_model_folder(const Document& document, Diagnostics& found) {
  const std::string names[] = {std::string(key), "model." + std::string(accept)};
  for (const auto& name : names)
    if (const Value* given = value_at(document.tree, name))
      found.add({.key = name,
                 .message = "a message cannot name the folder of a model",
                 .hint = "send its options and model.init, as `troupe submit` does",
                 .position = given->position});
}

}  // namespace troupe::config
