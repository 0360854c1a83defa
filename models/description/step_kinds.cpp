#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "core/json.h"
#include "models/description/step_kind.h"

namespace troupe::models {
namespace {

std::vector<StepKind> all_kinds() {
  using Type = StepOption::Type;
  std::vector<StepKind> all = kinds_for_rows();
  for (auto& kind : kinds_for_blocks()) all.push_back(std::move(kind));
  for (auto& kind : kinds_for_experts()) all.push_back(std::move(kind));
  for (auto& kind : kinds_for_images()) all.push_back(std::move(kind));
  all.push_back({.name = "residual",
                 .help = "Adds what its steps make of the stream to the stream. Residuals that "
                         "follow each other and begin with a norm of rows share their kernels.",
                 .head = StepKind::Head::steps,
                 .options = {{.name = "steps",
                              .type = Type::steps,
                              .help = "The steps.",
                              .presence = StepOption::Presence::required},
                             {.name = "shortcut",
                              .type = Type::steps,
                              .help = "Steps for the stream that is added. None of them: the "
                                      "stream itself."}}});
  all.push_back({.name = "parallel",
                 .help =
                     "Adds what branches, each a list of steps, make of the same stream, or puts "
                     "it side by side. There are two branches or more.",
                 .head = StepKind::Head::branches,
                 .options = {{.name = "branches",
                              .type = Type::steps,
                              .help = "The branches.",
                              .presence = StepOption::Presence::required},
                             {.name = "join",
                              .type = Type::choice,
                              .help = "The sum of the results, or their channels or widths one "
                                      "behind the other (concat).",
                              .fallback = "add",
                              .among = {"add", "concat"}}}});
  all.push_back({.name = "keep",
                 .help = "Marks the stream by a name, so that later steps can read it, in the same "
                         "part or in another one. For the outermost steps of a part.",
                 .head = StepKind::Head::kept});
  all.push_back({.name = "take",
                 .help = "Goes on with a kept value in place of the stream. It follows a keep, so "
                         "that nothing is lost. For the outermost steps of a part.",
                 .head = StepKind::Head::kept});
  all.push_back({.name = "add",
                 .help = "Adds a kept value of the same shape to the stream.",
                 .head = StepKind::Head::kept});
  all.push_back({.name = "concat",
                 .help = "Puts a kept value behind the stream: its channels, or its widths.",
                 .head = StepKind::Head::kept});
  all.push_back({.name = "cut",
                 .help = "Ends a unit: a plan may put what follows on another stage. For the "
                         "outermost steps of a part.",
                 .head = StepKind::Head::nothing});
  return all;
}

}  // namespace

std::span<const StepKind> step_kinds() {
  static const std::vector<StepKind> kinds = all_kinds();
  return kinds;
}

const StepKind* find_step_kind(std::string_view name) {
  const auto kinds = step_kinds();
  const auto found = std::ranges::find(kinds, name, &StepKind::name);
  return found == kinds.end() ? nullptr : &*found;
}

std::string full_name(const std::string& part, const std::string& own) {
  if (own == ".") return part;
  if (own.starts_with("/")) return own.substr(1);
  return part.empty() ? own : part + "." + own;
}

const Value& StepOptions::value(std::string_view name) const {
  const auto row = std::ranges::find(rows_, name, &StepOption::name);
  assert(row != rows_.end() && "a step asks for an option that it does not declare");
  return values_[static_cast<std::size_t>(std::distance(rows_.begin(), row))];
}

const ReadValue* StepOptions::read(std::string_view name) const {
  const auto found = std::ranges::find(read_, name, &std::pair<std::string_view, ReadValue>::first);
  return found == read_.end() ? nullptr : &found->second;
}

void StepContext::look_over(const ReadValue& spans, std::int64_t length) const {
  auto& bounds = kept[static_cast<std::size_t>(spans.number)].bounds;
  assert(bounds.are_spans && length > 0);
  bounds.below = bounds.below == 0 ? length + 1 : std::min(bounds.below, length + 1);
}

std::int64_t StepOptions::integer(std::string_view name) const {
  const auto* integer = value(name).integer();
  assert(integer);
  return *integer;
}

double StepOptions::number(std::string_view name) const { return value(name).number(); }

bool StepOptions::boolean(std::string_view name) const {
  const auto* boolean = value(name).boolean();
  assert(boolean);
  return *boolean;
}

std::string_view StepOptions::text(std::string_view name) const {
  const auto* text = value(name).text();
  assert(text);
  return *text;
}

std::vector<std::string> StepOptions::texts(std::string_view name) const {
  std::vector<std::string> texts;
  for (const auto& item : *value(name).list()) texts.push_back(*item.text());
  return texts;
}

std::optional<Init> StepOptions::init(std::string_view name) const {
  const Value& init = value(name);  // [word] or [word, number].
  if (init.is_null()) return {};
  const auto& parts = *init.list();
  const std::string& word = *parts[0].text();
  if (word == "zeros") return Init::zeros();
  if (word == "ones") return Init::ones();
  if (word == "normal") return Init::normal(parts[1].number());
  return Init{Init::Kind::uniform, static_cast<float>(parts[1].number())};
}

std::string wanted(const StepOption& option) {
  const auto bounds = " from " + shortest(option.least) + " to " + shortest(option.most);
  switch (option.type) {
    case StepOption::Type::integer:
      return "an integer" + bounds;
    case StepOption::Type::number:
      return "a number" + bounds;
    case StepOption::Type::boolean:
      return "true or false";
    case StepOption::Type::choice: {
      std::string text = "one of ";
      for (const auto word : option.among)
        text += (word == option.among.front() ? "" : ", ") + std::string(word);
      return text;
    }
    case StepOption::Type::text:
      return "a name";
    case StepOption::Type::texts:
      return "a list of names";
    case StepOption::Type::value:
      return "the name of an input or of a kept value";
    case StepOption::Type::init:
      return "\"normal(deviation)\", \"uniform(bound)\", \"zeros\" or \"ones\", with a number of "
             "at "
             "least 0";
    case StepOption::Type::steps:
      break;
  }
  return "steps";
}

StepOption init_option() {
  return {.name = "init",
          .type = StepOption::Type::init,
          .help =
              "How weights begin: \"normal(deviation)\", \"uniform(bound)\", \"zeros\" or "
              "\"ones\". Biases then begin at zero. Default: as in PyTorch."};
}

StepOption place_option(std::string_view fallback) {
  return {.name = "place",
          .type = StepOption::Type::choice,
          .help =
              "Whether the weights meet tokens, pixels or classes (edge). Muon leaves such "
              "weights to its other rule.",
          .fallback = fallback,
          .among = {"hidden", "edge"}};
}

Parameter::Place place_of(const StepOptions& options) {
  return options.text("place") == "edge" ? Parameter::Place::edge : Parameter::Place::hidden;
}

std::string to_text(const Flow& flow) {
  switch (flow.kind) {
    case Flow::Kind::tokens:
      return "tokens " + to_string(flow.shape);
    case Flow::Kind::rows:
      return "rows of numbers " + to_string(flow.shape);
    case Flow::Kind::images:
      return "images " + to_string(flow.shape);
    case Flow::Kind::spans:
      return "spans " + to_string(flow.shape);
  }
  return {};
}

Error not_taken(std::string_view taken, const Flow& input) {
  return {"takes " + std::string(taken) + " and gets " + to_text(input)};
}

}  // namespace troupe::models
