#include "apps/commands/usage.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"
#include "core/text.h"

namespace troupe::apps {
namespace {

/// Returns the innermost command that was called.
const CLI::App& called(const CLI::App& program) {
  const CLI::App* inner = &program;
  while (!inner->get_subcommands().empty()) inner = inner->get_subcommands().front();
  return *inner;
}

/// Returns a command of this name further below, or one here with a similar name; empty if there is
/// neither.
std::string meant(const CLI::App& command, const std::string& word) {
  std::vector<std::string_view> names;
  for (const auto* one : shown_commands(command)) {
    names.push_back(one->get_name());
    for (const auto* inner : shown_commands(*one))
      if (inner->get_name() == word) return full_name(*inner, ' ');
  }
  const auto name = nearest(word, names);
  return name.empty() ? "" : full_name(command, ' ') + ' ' + std::string(name);
}

/// Returns an option that the command lacks, with one of a similar name.
std::string no_option(const CLI::App& command, std::string word) {
  word = word.substr(0, word.find('='));
  std::vector<std::string> names;
  for (const CLI::App* level = &command; level; level = level->get_parent())
    for (const auto* option : level->get_options())
      for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  const std::string text = "there is no option " + word;
  // Some write a key of the configuration as an option.
  if (command.get_option_no_throw("--set") && word.starts_with("--"))
    for (const auto& key : config::schema().keys())
      if (key.name == word.substr(2) || key.leaf() == word.substr(2))
        return text + "; is --set " + key.name + "=VALUE meant?";
  const auto like = nearest(word, std::vector<std::string_view>(names.begin(), names.end()));
  return text + (like.empty() ? "" : "; is " + std::string(like) + " meant?");
}

/// Returns what is wrong with `--set key value` and `--set key = value`; empty if it is neither.
std::string split_setting(const CLI::App& command, const std::vector<std::string>& left) {
  const auto* option = command.get_option_no_throw("--set");
  if (!option || option->empty() || left.empty()) return {};
  const std::string key = option->results().back();
  const auto value = std::ranges::find_if(left, [](const auto& word) { return word != "="; });
  if (key.find('=') != std::string::npos || value == left.end()) return {};
  return "found --set " + key + " and " + *value + "; write --set " + key + "=" + *value;
}

/// A check that a word is a number with a property, which `wanted` names.
CLI::Validator number_check(const char* wanted, bool (*is_good)(double)) {
  return CLI::Validator(
      [wanted, is_good](const std::string& word) {
        double number = 0;
        const bool is_number = CLI::detail::lexical_cast(word, number);
        return is_number && is_good(number) ? "" : "found " + word + ", wanted " + wanted;
      },
      "");
}

}  // namespace

CLI::Validator above_zero() {
  return number_check("a number above 0", [](double number) { return number > 0; });
}
CLI::Validator not_negative() {
  return number_check("0 or a number above it", [](double number) { return number >= 0; });
}

std::vector<const CLI::App*> shown_commands(const CLI::App& command) {
  auto all = command.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); });
  return {all.begin(), all.end()};
}

std::string full_name(const CLI::App& command, char between) {
  const CLI::App* parent = command.get_parent();
  return parent ? full_name(*parent, between) + between + command.get_name() : command.get_name();
}

std::string no_command(const CLI::App& command, const std::string& word) {
  const auto other = meant(command, word);
  return full_name(command, ' ') + ": there is no command '" + word + "'; " +
         (other.empty() ? "" : "is `" + other + "` meant? ");
}

std::string describe(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App& command = called(program);
  const auto words = full_name(command, ' ');
  const auto see = "see `" + words + " --help`";
  const auto left = program.remaining(true);
  const auto word = std::ranges::find_if(left, [](const auto& one) { return one.front() != '-'; });
  if (!shown_commands(command).empty() && word != left.end())
    return no_command(command, *word) + see;
  if (const auto split = split_setting(command, left); !split.empty()) return words + ": " + split;
  const auto option = std::ranges::find_if(left, [](const auto& one) {
    return one.size() > 1 && one.front() == '-' &&
           !std::isdigit(static_cast<unsigned char>(one[1]));
  });
  if (option != left.end()) return words + ": " + no_option(command, *option) + "; " + see;
  std::string what = error.what();
  if (!what.empty() && what.back() == '\n') what.pop_back();
  return words + ": " + what + "; " + see;
}

}  // namespace troupe::apps
