#include <algorithm>
#include <utility>

#include "core/json.h"
#include "models/description/description.h"
#include "models/description/evaluation.h"
#include "models/description/preset.h"
#include "models/description/read_options.h"
#include "models/description/read_steps.h"

namespace troupe::models {
namespace {

int depth_of(const Value& value) {
  int deepest = 0;
  if (const auto* list = value.list())
    for (const auto& item : *list) deepest = std::max(deepest, depth_of(item));
  if (const auto* map = value.map())
    for (const auto& entry : *map) deepest = std::max(deepest, depth_of(entry.value));
  return value.list() || value.map() ? deepest + 1 : 0;
}

/// Reads all of a description but its options and steps.
class Reader {
 public:
  explicit Reader(const Value& tree) : tree_(tree) {}

  std::variant<Description, Fault> read() {
    check_tree();
    read_header();
    if (!sink_.fault) sink_.fault = read_options(tree_, made_.options);
    if (!sink_.fault) sink_.fault = read_presets(tree_, made_.options, made_.presets);
    sink_.read_let(tree_.find("let"), "let", made_.let);
    read_divides();
    read_require();
    read_input();
    read_loss();
    read_parts();
    if (!sink_.fault)
      sink_.fault = read_hugging_face(tree_, made_.options, made_.presets, made_.hugging_face);
    if (sink_.fault) return *std::move(sink_.fault);
    return std::move(made_);
  }

 private:
  void check_tree() {
    if (!tree_.map()) return sink_.fail(tree_, "", "a model description is a table");
    // Readers of files and messages bound the depth too, so this recursion is safe.
    if (depth_of(tree_) > bounds::depth)
      return sink_.fail(
          tree_, "model",
          "tables and lists are at most " + std::to_string(bounds::depth) + " inside each other");
    if (to_json(tree_).size() > bounds::bytes)
      return sink_.fail(
          tree_, "model",
          "a description has at most " + std::to_string(bounds::bytes >> 10) + " KiB");
    sink_.check_keys(tree_, "",
                     {"model", "common", "fallback", "options", "preset", "let", "divides",
                      "require", "input", "loss", "every", "part", "huggingface"});
    for (const std::string_view key : {"model", "input", "loss", "part"})
      if (!tree_.find(key))
        return sink_.fail(tree_, std::string(key),
                          "'" + std::string(key) +
                              "' is missing; a description has model, input, "
                              "loss and part");
  }

  void read_header() {
    const Value* model = table("model", {"format", "name", "help", "later"});
    if (!model) return;
    const Value* format = model->find("format");
    if (!format || *format != Value(1))
      return sink_.fail(*model, "model", "format = 1 is the only one that this program reads");
    made_.name = text_in(*model, "name");
    made_.help = text_in(*model, "help");
    if (!is_name(made_.name))
      return sink_.fail(*model, "model",
                        "name is a lower-case word of letters, digits and underscores");
    if (made_.help.empty() || made_.help.size() > 400)
      sink_.fail(*model, "model", "help is one sentence");
  }

  void read_divides() {
    const Value* list = rows("divides");
    if (!list) return;
    for (std::size_t i = 0; i < list->list()->size(); ++i) {
      const Value& row = (*list->list())[i];
      const auto path = "divides[" + std::to_string(i) + "]";
      const auto* items = row.list();
      if (!items || items->size() < 2 || items->size() > 3 || !is_integer_option((*items)[0]) ||
          !is_integer_option((*items)[1]))
        return sink_.fail(row, path,
                          "a row is [small, large] or [small, large, when], with the names of two "
                          "integer options or values");
      Divides divides{*(*items)[0].text(), *(*items)[1].text(), {}};
      if (items->size() == 3)
        divides.when = sink_.parse((*items)[2], path, Formula::Texts::expressions);
      made_.divides.push_back(std::move(divides));
    }
  }

  bool is_integer_option(const Value& value) const {
    const auto* text = value.text();
    return text && std::ranges::any_of(made_.options, [&](const Option& option) {
             return option.name == *text && option.type == Option::Type::integer;
           });
  }

  void read_require() {
    const Value* list = rows("require");
    if (!list) return;
    for (std::size_t i = 0; i < list->list()->size(); ++i) {
      const Value& row = (*list->list())[i];
      const auto path = "require[" + std::to_string(i) + "]";
      const auto* items = row.list();
      if (!items || items->size() != 2 || !(*items)[1].text())
        return sink_.fail(row, path, "a row is [expression, why], two texts");
      made_.require.push_back({sink_.parse((*items)[0], path, Formula::Texts::expressions),
                               sink_.parse((*items)[1], path, Formula::Texts::templates)});
    }
  }

  void read_input() {
    const Value* inputs = table("input", {});
    if (!inputs) return;
    if (inputs->map()->empty() || inputs->map()->size() > bounds::inputs)
      return sink_.fail(*inputs, "input",
                        "a model has 1 to " + std::to_string(bounds::inputs) +
                            " inputs, such as input.tokens = { type, shape, below }");
    for (const auto& entry : *inputs->map()) {
      read_one_input(entry.key, entry.value);
      if (sink_.fault) return;
    }
  }

  void read_one_input(const std::string& name, const Value& input) {
    constexpr std::size_t longest_shown = 60;
    const auto path = "input." + name.substr(0, longest_shown);
    if (!is_parameter_name(name))
      return sink_.fail(input, path, "the name of an input has 1 to 256 letters, digits and ._-/:");
    if (!input.map()) return sink_.fail(input, path, "an input is a table: { type, shape, below }");
    sink_.check_keys(input, path, {"type", "shape", "below", "when"});
    const auto type = text_in(input, "type");
    if (type != "i32" && type != "f32")
      return sink_.fail(input, path, "type is \"i32\" (tokens) or \"f32\" (numbers)");
    Description::Input made{.name = name,
                            .has_integers = type == "i32",
                            .shape = {},
                            .below = {},
                            .when = {},
                            .place = {input.position, path}};
    const Value* shape = input.find("shape");
    if (!shape || !shape->list())
      return sink_.fail(input, path, "shape is a list of sizes, without the batch");
    made.shape = sink_.parse(*shape, path + ".shape", Formula::Texts::expressions);
    const Value* below = input.find("below");
    // Integers of two sizes are spans, which are bounded by what they look at.
    const bool are_tokens = made.has_integers && shape->list()->size() != 2;
    if (are_tokens != (below != nullptr))
      return sink_.fail(input, path, "tokens, and only they, need below: all are smaller");
    if (below) made.below = sink_.parse(*below, path + ".below", Formula::Texts::expressions);
    if (const Value* when = input.find("when")) {
      if (made_.inputs.empty())
        return sink_.fail(*when, path,
                          "the first input, with which the stream begins, has no when");
      made.when = sink_.parse(*when, path + ".when", Formula::Texts::expressions);
    }
    made_.inputs.push_back(std::move(made));
  }

  void read_loss() {
    const Value* loss = table("loss", {"kind", "classes", "ignore", "smoothing", "z"});
    if (!loss) return;
    made_.loss.place = {loss->position, "loss"};
    const auto kind = text_in(*loss, "kind");
    if (kind == "binary" || kind == "squared") {
      made_.loss.kind = kind == "binary" ? LossKind::binary : LossKind::squared;
      for (const auto& entry : *loss->map())
        if (entry.key != "kind")
          return sink_.fail(
              entry.value, "loss",
              "only a loss of kind = \"cross_entropy\" has '" + entry.key + "'; leave it out");
      return;
    }
    if (kind != "cross_entropy")
      return sink_.fail(*loss, "loss", "kind is \"cross_entropy\", \"binary\" or \"squared\"");
    const Value* classes = loss->find("classes");
    if (!classes) return sink_.fail(*loss, "loss", "classes, their number, is missing");
    made_.loss.classes = sink_.parse(*classes, "loss.classes", Formula::Texts::expressions);
    const auto read = [&](const std::string& key, std::optional<PlacedFormula>& to) {
      if (const Value* value = loss->find(key))
        to = sink_.parse(*value, "loss." + key, Formula::Texts::expressions);
    };
    read("ignore", made_.loss.ignore);
    read("smoothing", made_.loss.smoothing);
    read("z", made_.loss.z);
  }

  void read_parts() {
    const Value* parts = tree_.find("part");
    if (sink_.fault) return;
    if (!parts->list() || parts->list()->empty())
      return sink_.fail(*parts, "part", "part is a list of tables with a body each");
    const Defaults defaults(tree_.find("every"), sink_);
    for (std::size_t i = 0; i < parts->list()->size() && !sink_.fault; ++i)
      read_part((*parts->list())[i], "part[" + std::to_string(i) + "]", defaults);
  }

  void read_part(const Value& value, const std::string& path, const Defaults& defaults) {
    if (!value.map()) return sink_.fail(value, path, "a part is a table with a body");
    sink_.check_keys(value, path, {"name", "repeat", "let", "unit", "body"});
    Part part{.place = {value.position, path}};
    if (const Value* name = value.find("name"))
      part.name = sink_.parse(*name, path + ".name", Formula::Texts::templates);
    if (const Value* repeat = value.find("repeat")) {
      if (!repeat->map())
        return sink_.fail(*repeat, path + ".repeat",
                          "repeat is a table of variables: { i = \"layers\" }");
      sink_.read_let(repeat, path + ".repeat", part.repeat);
    }
    sink_.read_let(value.find("let"), path + ".let", part.let);
    if (const Value* unit = value.find("unit")) {
      if (!unit->text() || *unit->text() != "own")
        return sink_.fail(*unit, path + ".unit", "unit = \"own\" is the only value");
      part.is_own_unit = true;
    }
    const Value* body = value.find("body");
    if (!body || !body->list()) return sink_.fail(value, path, "body, a list of steps, is missing");
    part.body = read_steps(*body, path + ".body", defaults, sink_);
    made_.parts.push_back(std::move(part));
  }

  /// Returns a table of the description, or null.
  const Value* table(const std::string& key, const std::vector<std::string_view>& keys) {
    if (sink_.fault) return nullptr;
    const Value* value = tree_.find(key);
    if (value->map()) {
      if (!keys.empty()) sink_.check_keys(*value, key, keys);
      return sink_.fault ? nullptr : value;
    }
    sink_.fail(*value, key, "'" + key + "' is a table");
    return nullptr;
  }

  /// Returns a list of the description, or null.
  const Value* rows(const std::string& key) {
    const Value* value = sink_.fault ? nullptr : tree_.find(key);
    if (!value || value->list()) return value;
    sink_.fail(*value, key, "'" + key + "' is a list of rows");
    return nullptr;
  }

  const Value& tree_;
  Description made_;
  FaultSink sink_;
};

}  // namespace

std::variant<Description, Fault> read_description(const Value& tree) { return Reader(tree).read(); }

}  // namespace troupe::models
