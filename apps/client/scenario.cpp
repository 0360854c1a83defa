#include "apps/client/scenario.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <string_view>

#include "config/toml/toml.h"
#include "core/json.h"
#include "core/units.h"

namespace troupe::apps {
namespace {

constexpr int most_nodes = 64;

std::string said(const Value& value) { return value.text() ? *value.text() : to_json(value); }

std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

struct Comparison {
  std::string_view sign;
  bool (*holds)(double found, double wanted);
};
// Longer signs come first, since "<" is a prefix of "<=".
constexpr std::array<Comparison, 4> comparisons = {{
    {">=", [](double found, double wanted) { return found >= wanted; }},
    {"<=", [](double found, double wanted) { return found <= wanted; }},
    {">", [](double found, double wanted) { return found > wanted; }},
    {"<", [](double found, double wanted) { return found < wanted; }},
}};

/// Returns the text after `sign`, if the text begins with it.
std::optional<std::string_view> behind(std::string_view text, std::string_view sign) {
  if (!text.starts_with(sign)) return {};
  text.remove_prefix(sign.size());
  while (text.starts_with(' ')) text.remove_prefix(1);
  return text;
}

bool is_as(const Value& found, const Value& wanted) {
  if (found.is_number() && wanted.is_number()) return found.number() == wanted.number();
  if (!wanted.text()) return found == wanted;
  const std::string_view text = *wanted.text();
  for (const auto& comparison : comparisons)
    if (const auto bound = behind(text, comparison.sign))
      if (const auto number = number_of(*bound))
        return found.is_number() && comparison.holds(found.number(), *number);
  if (const auto other = behind(text, "!=")) return said(found) != *other;
  if (const auto part = behind(text, "~")) return said(found).find(*part) != std::string::npos;
  return said(found) == text;
}

/// Reads one act of a scenario, key by key.
class ActReader {
 public:
  explicit ActReader(Act& act) : act_(act) {}

  Status read(const Value::Entry& entry) {
    const auto& [key, value, position] = entry;
    if (key == "after") return duration(value, act_.after);
    if (key == "within") return duration(value, act_.within);
    if (key == "when") return pattern(value, [&](Pattern one) { act_.when = std::move(one); });
    if (key == "expect") return patterns(value);
    if (key == "start") return texts(value, act_.start);
    if (key == "set") return texts(value, act_.set);
    if (key == "command") return texts(value, act_.command);
    if (key == "same_weights") return two_runs(value);
    if (key == "send") return message(value);
    if (key == "submit") {
      if (!value.text()) return Error{"wanted a configuration: \"../quickstart.toml\""};
      act_.submit = *value.text();
      return Done{};
    }
    if (key == "resume") {
      if (!value.boolean()) return Error{"wanted true or false"};
      act_.resume = *value.boolean();
      return Done{};
    }
    if (key == "exit_code") {
      if (!value.integer()) return Error{"wanted a number"};
      act_.exit_code = static_cast<int>(*value.integer());
      return Done{};
    }
    return Error{
        "is no key of an act; there are after, when, start, submit, set, resume, send, command, "
        "exit_code, expect, same_weights and within"};
  }

 private:
  static Status duration(const Value& value, std::chrono::nanoseconds& into) {
    if (!value.text()) return Error{"wanted a duration: \"5s\""};
    const auto read = parse_duration(*value.text());
    if (!read) return read.error();
    into = *read;
    return Done{};
  }
  static Status pattern(const Value& value, const std::function<void(Pattern)>& take) {
    if (!value.map() || value.map()->empty())
      return Error{"wanted a table of fields: { type = \"step\", step = \">= 45\" }"};
    take(Pattern(value));
    return Done{};
  }
  Status patterns(const Value& value) {
    const auto take = [&](Pattern one) { act_.expect.push_back(std::move(one)); };
    if (!value.list()) return pattern(value, take);
    for (const auto& one : *value.list())
      if (auto read = pattern(one, take); !read) return read;
    return Done{};
  }
  static Status texts(const Value& value, std::vector<std::string>& into) {
    if (!value.list()) return Error{"wanted a list of texts"};
    for (const auto& one : *value.list()) {
      if (!one.text()) return Error{"wanted a list of texts"};
      into.push_back(*one.text());
    }
    return Done{};
  }
  Status two_runs(const Value& value) {
    if (auto read = texts(value, act_.same_weights); !read) return read;
    if (act_.same_weights.size() != 2) return Error{"wanted two runs: [\"calm\", \"stormy\"]"};
    return Done{};
  }
  Status message(const Value& value) {
    const Value* type = value.find("type");
    if (!type || !type->text())
      return Error{"wanted a message with its type: { type = \"run.pause\", run = \"calm\" }"};
    act_.send = value;
    return Done{};
  }

  Act& act_;
};

}  // namespace

bool Pattern::matches(const Value& event) const {
  return std::ranges::all_of(*fields_.map(), [&](const Value::Entry& field) {
    const Value* found = event.find(field.key);
    return found && is_as(*found, field.value);
  });
}

std::string Pattern::text() const {
  std::string fields;
  for (const auto& [key, value, _] : *fields_.map()) {
    if (key == "type") continue;
    fields += (fields.empty() ? " with " : ", ") + key + " = " + said(value);
  }
  return (type().empty() ? "an event" : type()) + fields;
}

std::string Pattern::type() const {
  const Value* type = fields_.find("type");
  return type ? said(*type) : std::string();
}

Result<Scenario> parse_scenario(std::string path, const std::string& text) {
  const auto tree = config::parse_toml(text);
  if (!tree) return Error{path + ":" + tree.error().text};
  Scenario scenario;
  scenario.path = std::move(path);
  const auto wrong = [&](Position at, const std::string& key, const std::string& what) {
    return Error{scenario.path + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) +
                 ": " + key + ": " + what};
  };
  for (const auto& [key, value, position] : *tree->map()) {
    if (key == "cluster") {
      const Value* nodes = value.find("nodes");
      if (!nodes || !nodes->integer() || *nodes->integer() < 1 || *nodes->integer() > most_nodes ||
          value.map()->size() != 1)
        return wrong(position, "cluster", "wanted nodes = N, from 1 to 64, and nothing else");
      scenario.nodes = static_cast<int>(*nodes->integer());
    } else if (key == "act" && value.list()) {
      for (const auto& one : *value.list()) {
        if (!one.map()) return wrong(one.position, "act", "wanted a table: [[act]]");
        Act act;
        act.line = one.position.line;
        for (const auto& entry : *one.map())
          if (auto read = ActReader(act).read(entry); !read)
            return wrong(entry.position, entry.key, read.error().text);
        scenario.acts.push_back(std::move(act));
      }
    } else {
      return wrong(position, key, "found this key; there are [cluster] and [[act]]");
    }
  }
  if (scenario.acts.empty()) return Error{scenario.path + ": has no [[act]]"};
  return scenario;
}

}  // namespace troupe::apps
