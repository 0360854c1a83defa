#include "storage/data/data_spec.h"

#include <algorithm>
#include <charconv>

#include "core/json.h"
#include "core/text.h"

namespace troupe::storage {

Result<DataSpec> DataSpec::parse(const std::string& text) {
  DataSpec spec;
  spec.text_ = text;
  std::string_view rest = text;
  constexpr std::string_view made = "made:";
  if (rest.starts_with(made)) {
    spec.kind_ = Kind::made;
    rest.remove_prefix(made.size());
  }
  const auto question = rest.find('?');
  spec.name_ = rest.substr(0, question);
  if (spec.name_.empty()) return Error{"\"" + text + "\" names no data"};
  while (question != std::string_view::npos) {
    if (spec.options_.empty()) rest.remove_prefix(question + 1);
    const auto end = rest.find('&');
    const auto option = rest.substr(0, end);
    const auto equals = option.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return Error{"\"" + text + "\": the option \"" + std::string(option) +
                   "\" is not of the form key=value"};
    const std::string key(option.substr(0, equals));
    for (const auto& other : spec.options_)
      if (other.key == key)
        return Error{"\"" + text + "\": the option \"" + key + "\" is given twice"};
    spec.options_.push_back({key, std::string(option.substr(equals + 1))});
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return spec;
}

const DataSpec::Option* DataSpec::ask(std::string_view key) {
  asked_.emplace_back(key);
  for (auto& option : options_)
    if (option.key == key) {
      option.use = Option::Use::known;
      return &option;
    }
  return nullptr;
}

std::int64_t DataSpec::integer(std::string_view key, std::int64_t fallback, std::int64_t least,
                               std::int64_t most) {
  const auto* option = ask(key);
  if (!option) return fallback;
  std::int64_t value = 0;
  const char* end = option->value.data() + option->value.size();
  const auto read = std::from_chars(option->value.data(), end, value);
  if (read.ec == std::errc() && read.ptr == end && value >= least && value <= most) return value;
  if (!error_)
    error_ = Error{"\"" + text_ + "\": " + option->key + " = \"" + option->value +
                   "\"; an integer from " + std::to_string(least) + " to " + std::to_string(most) +
                   " was wanted"};
  return fallback;
}

double DataSpec::number(std::string_view key, double fallback, double least, double most) {
  const auto* option = ask(key);
  if (!option) return fallback;
  double value = 0;
  const char* end = option->value.data() + option->value.size();
  const auto read = std::from_chars(option->value.data(), end, value);
  if (read.ec == std::errc() && read.ptr == end && value >= least && value <= most) return value;
  if (!error_)
    error_ =
        Error{"\"" + text_ + "\": " + option->key + " = \"" + option->value + "\"; a number from " +
              shortest(least) + " to " + shortest(most) + " was wanted"};
  return fallback;
}

std::optional<std::string> DataSpec::text(std::string_view key) {
  const auto* option = ask(key);
  if (!option) return {};
  return option->value;
}

Status DataSpec::finish() const {
  for (const auto& option : options_) {
    if (option.use == Option::Use::known) continue;
    std::string known;
    for (const auto& key : asked_) known += (known.empty() ? "" : ", ") + key;
    const auto near = nearest(option.key, {asked_.begin(), asked_.end()});
    return Error{
        "\"" + text_ + "\": unknown option \"" + option.key + "\"" +
        (near.empty() ? "" : "; did you mean \"" + std::string(near) + "\"?") +
        (known.empty() ? " (there are no options here)" : " (options here: " + known + ")")};
  }
  if (error_) return *error_;
  return Done{};
}

}  // namespace troupe::storage
