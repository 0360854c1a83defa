#include "apps/commands/completion.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string_view>

#include "apps/command.h"
#include "config/pages/render.h"

namespace troupe::apps {
namespace {

constexpr std::string_view bash = R"sh(_troupe() {
  local IFS=$'\n'
  COMPREPLY=($("$1" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1))
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace; fi
}
complete -o default -F _troupe troupe
)sh";

// zsh calls a file in its function path as the function; a user may also source it.
constexpr std::string_view zsh = R"sh(#compdef troupe
_troupe() {
  local -a found
  local line
  for line in ${(f)"$(troupe complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"}; do
    found+=("${line%%$'\t'*}:${line#*$'\t'}")
  done
  if (( ${#found} )); then _describe troupe found; else _files; fi
}
if [[ $funcstack[1] == _troupe ]]; then _troupe "$@"; else compdef _troupe troupe; fi
)sh";

constexpr std::string_view fish =
    "complete -c troupe -a '(troupe complete -- (commandline -opc)[2..] (commandline -ct))'\n";

/// Finds an option of the command or of its parents, whose options it accepts too.
const CLI::Option* find_option(const CLI::App* app, const std::string& name) {
  for (; app; app = app->get_parent())
    if (const auto* option = app->get_option_no_throw(name)) return option;
  return nullptr;
}

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  for (const auto* command : app.get_subcommands({}))
    if (command->get_name() == name) return command;
  return nullptr;
}

/// Returns "a" and "b" for an option whose values are {a,b}.
std::vector<Candidate> choices(const CLI::Option& option) {
  std::vector<Candidate> found;
  const std::string type = option.get_type_name();
  const auto begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return found;
  for (auto at = begin + 1; at <= end; at = std::min(type.find(',', at), end) + 1) {
    const auto next = std::min(type.find(',', at), end);
    found.push_back({type.substr(at, next - at), option.get_description()});
  }
  return found;
}

std::vector<Candidate> values(const CLI::Option& option) {
  if (option.get_name() != "--set") return choices(option);
  std::vector<Candidate> found;
  for (auto& key : config::completions())
    found.push_back({std::move(key.word), std::move(key.help)});
  return found;
}

std::vector<Candidate> all_options(const CLI::App* app) {
  std::vector<Candidate> found;
  for (; app; app = app->get_parent())
    for (const auto* option : app->get_options())
      for (const auto& name : option->get_lnames())
        found.push_back({"--" + name, option->get_description()});
  return found;
}

std::vector<Candidate> all_words(const CLI::App& app) {
  std::vector<Candidate> found;
  for (const auto* command : app.get_subcommands({}))
    if (!command->get_group().empty())
      found.push_back({command->get_name(), command->get_description()});
  for (const auto* option : app.get_options())
    if (option->get_positional()) std::ranges::move(choices(*option), std::back_inserter(found));
  return found;
}

struct CompletionArguments {
  std::string shell;
};

ExitCode completion(const CompletionArguments& arguments, const CommonFlags&) {
  const auto script = arguments.shell == "bash" ? bash : arguments.shell == "zsh" ? zsh : fish;
  std::fwrite(script.data(), 1, script.size(), stdout);
  return ExitCode::done;
}

}  // namespace

std::vector<Candidate> candidates(const CLI::App& program, const std::vector<std::string>& words) {
  if (words.empty()) return {};
  const CLI::App* app = &program;
  const CLI::Option* open = nullptr;  // The option that expects a value next.
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (open) {
      open = nullptr;
    } else if (words[i].starts_with('-')) {
      const auto* option = find_option(app, words[i]);
      if (option && option->get_items_expected_max() > 0) open = option;
    } else if (const auto* command = find_command(*app, words[i])) {
      app = command;
    }
  }
  const auto& last = words.back();
  auto found = open ? values(*open) : last.starts_with('-') ? all_options(app) : all_words(*app);
  std::erase_if(found, [&](const Candidate& one) { return !one.word.starts_with(last); });
  return found;
}

void add_completion(Program& program) {
  auto [command, arguments] =
      add_command(program, program.app, "completion",
                  "print a completion script for bash, zsh or fish", completion);
  command->add_option("shell", arguments.shell, "the shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  // Used by the scripts and hidden from people.
  CLI::App* complete = program.app.add_subcommand("complete", "")->group("");
  auto words = std::make_shared<std::vector<std::string>>();
  complete->add_option("words", *words);
  complete->callback([&app = program.app, words] {
    for (const auto& [word, help] : candidates(app, *words))
      std::printf("%s\t%s\n", word.c_str(), help.c_str());
  });
}

}  // namespace troupe::apps
