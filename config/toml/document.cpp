#include "config/toml/document.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "config/toml/toml.h"
#include "core/json.h"
#include "core/units.h"

namespace troupe::config {
namespace {

constexpr std::size_t longest_chain = 16;
constexpr std::size_t most_bytes = std::size_t{1} << 20;

/// Splits an error of a reader, "line:column: text".
std::pair<Position, std::string> take_apart(const std::string& error) {
  Position position;
  std::size_t at = 0;
  for (int* number : {&position.line, &position.column}) {
    while (at < error.size() && error[at] >= '0' && error[at] <= '9')
      *number = *number * 10 + (error[at++] - '0');
    ++at;  // The colon.
  }
  return {position, error.substr(std::min(at + 1, error.size()))};
}

/// Merges tables of `upper` into `lower`, and replaces all other values.
void merge(Value& lower, Value upper) {
  if (!lower.map() || !upper.map()) {
    lower = std::move(upper);
    return;
  }
  lower.position = upper.position;
  for (auto& entry : *upper.map()) {
    auto* entries = lower.map();
    const auto present = std::find_if(entries->begin(), entries->end(),
                                      [&](const auto& other) { return other.key == entry.key; });
    if (present == entries->end()) {
      entries->push_back(std::move(entry));
    } else {
      present->position = entry.position;
      merge(present->value, std::move(entry.value));
    }
  }
}

/// Removes `extends` from a tree and returns it.
Value take_extends(Value& tree) {
  auto* entries = tree.map();
  const auto entry = std::find_if(entries->begin(), entries->end(),
                                  [](const auto& other) { return other.key == "extends"; });
  if (entry == entries->end()) return {};
  Value taken = std::move(entry->value);
  entries->erase(entry);
  return taken;
}

/// Reads a file and the files that it extends.
class Reader {
 public:
  Reader(const ReadText& read, Sources& sources, Diagnostics& found)
      : read_(read), sources_(sources), found_(found) {}

  /// `asked_at` is the position that names the file, if a file names it.
  Value read_chain(const std::string& path, Position asked_at) {
    if (!may_read(path, asked_at)) return Value::Map{};
    chain_.push_back(path);
    Value tree = read_one(path, asked_at);
    const Value base = take_extends(tree);
    if (base.is_null()) return tree;
    const auto* name = base.text();
    if (!name) {
      found_.add({.key = "extends",
                  .message = "extends wants the path of a file, but found " +
                             std::string(describe(base.kind())),
                  .position = base.position});
      return tree;
    }
    const auto folder =
        path == "-" ? std::filesystem::path() : std::filesystem::path(path).parent_path();
    Value merged = read_chain((folder / *name).lexically_normal().string(), base.position);
    merge(merged, std::move(tree));
    return merged;
  }

 private:
  bool may_read(const std::string& path, Position asked_at) {
    const auto before = std::find(chain_.begin(), chain_.end(), path);
    if (before != chain_.end()) {
      std::string circle;
      for (auto file = before; file != chain_.end(); ++file) circle += *file + " extends ";
      found_.add({.key = "extends",
                  .message = "files extend each other in a circle: " + circle + path,
                  .position = asked_at});
      return false;
    }
    if (chain_.size() < longest_chain) return true;
    found_.add({.key = "extends",
                .message = "a chain of more than " + std::to_string(longest_chain) +
                           " files that extend each other",
                .position = asked_at});
    return false;
  }

  Value read_one(const std::string& path, Position asked_at) {
    auto text = read_(path);
    if (!text) {
      if (asked_at.line == 0) sources_.add(path, "", Position{});
      found_.add({.message = text.error().text, .position = asked_at});
      return Value::Map{};
    }
    const bool is_json = path == "-" || path.ends_with(".json");
    auto tree = is_json ? parse_json(*text) : parse_toml(*text);
    const std::string name = path == "-" ? "<stdin>" : path;
    if (!tree) {
      auto [position, why] = take_apart(tree.error().text);
      position = sources_.add(name, *std::move(text), position);
      found_.add({.message = why, .position = position});
      return Value::Map{};
    }
    sources_.add(name, *std::move(text), *tree);
    if (tree->map()) return *std::move(tree);
    found_.add(
        {.message = "a configuration is a table, but found " + std::string(describe(tree->kind())),
         .position = tree->position});
    return Value::Map{};
  }

  const ReadText& read_;
  Sources& sources_;
  Diagnostics& found_;
  std::vector<std::string> chain_;
};

/// Parses "a.b=c" to a tree. A word that is not a TOML value is a text.
Result<Value> parse_setting(const std::string& setting) {
  const auto equals = setting.find('=');
  const std::string key = setting.substr(0, equals);
  if (equals == setting.npos || key.empty() || key.find_first_of("\"'#[]{}\r\n") != key.npos)
    return Error{"1:1: a setting is written key=value: --set batch.global=64"};
  const bool one_line = setting.find_first_of("\r\n") == setting.npos;
  if (one_line)
    if (auto tree = parse_toml(setting)) return tree;
  const std::string word = setting.substr(equals + 1);
  const auto column = std::to_string(equals + 2);
  if (word.find_first_not_of(" \t") == word.npos)
    return Error{"1:" + column + ": '" + key + "' is given no value; write \"\" for an empty text"};
  // A word that begins like a TOML value was meant as one, so it must not become a text.
  if (std::string_view("\"'[{").find(word.front()) != std::string_view::npos) {
    auto tree = parse_toml(setting);
    return tree ? Error{"1:" + column + ": a value of --set stands on one line"} : tree;
  }
  auto tree = parse_toml(key + "=" + to_toml(Value(word)));
  return tree ? std::move(tree) : Error{"1:1: '" + key + "' is no key"};
}

std::string read_all(std::istream& in) {
  std::string text(most_bytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

bool names_a_description(const Value& kind) {
  return kind.text() && kind.text()->ends_with(".toml");
}

/// Puts the description that `model.kind` names beside it, and the description's name in its place.
void read_description(const ReadText& read, Document& document, Diagnostics& found) {
  Value* model = document.tree.find("model");
  Value* kind = model ? model->find("kind") : nullptr;
  if (!kind || !names_a_description(*kind)) return;
  const auto position = kind->position;
  const auto path =
      (folder_at(document.sources, position) / *kind->text()).lexically_normal().string();
  const auto fail = [&](const std::string& why, Position at) {
    found.add({.key = "model.kind", .message = why, .position = at});
    document.whole = false;
  };
  auto text = read(path);
  if (!text) return fail("model.kind: " + text.error().text, position);
  auto tree = parse_toml(*text);
  if (!tree) {
    auto [at, why] = take_apart(tree.error().text);
    return fail(why, document.sources.add(path, *std::move(text), at));
  }
  document.sources.add(path, *std::move(text), *tree);
  const Value* header = tree->find("model");
  Value name = header ? text_in(*header, "name") : std::string();
  name.position = position;
  *kind = std::move(name);
  model->set("description", *std::move(tree));
}

}  // namespace

std::filesystem::path folder_at(const Sources& sources, Position position) {
  const auto source = sources.find(position).source;
  if (source == "--set" || source == "<stdin>") return {};
  return std::filesystem::path(source).parent_path();
}

void put_everything_at(Position position, Value& value) {
  value.position = position;
  if (auto* list = value.list())
    for (auto& item : *list) put_everything_at(position, item);
  if (auto* map = value.map())
    for (auto& entry : *map) {
      entry.position = position;
      put_everything_at(position, entry.value);
    }
}

Result<std::string> read_text_file(const std::string& path) {
  std::error_code ignored;
  std::string text;
  if (path == "-") {
    text = read_all(std::cin);
  } else {
    if (std::filesystem::is_directory(path, ignored))
      return Error{"'" + path + "' is a folder; a configuration is a file in it"};
    std::ifstream file(path, std::ios::binary);
    if (!file) return Error{"cannot read '" + path + "'; is the path right, and may you read it?"};
    text = read_all(file);
  }
  if (text.size() > most_bytes)
    return Error{"'" + path + "' has more than " + size_text(most_bytes) +
                 ", which is no configuration"};
  return text;
}

Document read_document(const DocumentRequest& request, Diagnostics& found) {
  Document document;
  Reader reader(request.read, document.sources, found);
  document.tree = reader.read_chain(request.path, {});
  document.whole = found.ok();
  apply_settings(request.settings, document, found);
  if (found.ok()) read_description(request.read, document, found);
  return document;
}

void apply_settings(const std::vector<std::string>& settings, Document& document,
                    Diagnostics& found) {
  for (const auto& setting : settings) {
    auto tree = parse_setting(setting);
    if (tree) {
      document.sources.add("--set", setting, *tree);
      merge(document.tree, *std::move(tree));
    } else {
      auto [position, why] = take_apart(tree.error().text);
      position = document.sources.add("--set", setting, position);
      found.add({.message = why, .position = position});
    }
  }
}

Document document_from(Value body, std::string name, Diagnostics& found) {
  Document document;
  put_everything_at({1, 0}, body);
  document.sources.add(std::move(name), "", body);
  if (!body.map()) {
    found.add(
        {.message = "a configuration is a table, but found " + std::string(describe(body.kind()))});
    document.whole = false;
    body = Value::Map{};
  } else if (!take_extends(body).is_null()) {
    found.add({.key = "extends",
               .message = "a message cannot extend a file",
               .hint = "send the merged tree, as `troupe submit` does"});
  }
  if (const Value* model = body.find("model"))
    if (const Value* kind = model->find("kind"); kind && names_a_description(*kind))
      found.add({.key = "model.kind",
                 .message = "a message cannot name the file of a model",
                 .hint = "send its content as model.description, as `troupe submit` does",
                 .position = kind->position});
  document.tree = std::move(body);
  return document;
}

}  // namespace troupe::config
