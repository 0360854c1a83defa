#include "apps/hosts/hostfile.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "apps/hosts/line_reader.h"
#include "storage/files/files.h"

namespace troupe::apps {
namespace {

constexpr std::size_t longest_name = 255;
constexpr int most_slots = 1024;

bool is_of(std::string_view text, std::string_view more) {
  return std::ranges::all_of(text, [more](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           more.find(c) != std::string_view::npos;
  });
}

std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), number);
  if (error != std::errc() || end != text.end()) return {};
  return number;
}

/// Returns why ssh must not be given this name, and a hint; empty if the name is safe.
std::pair<std::string, std::string> fault_of_name(std::string_view name) {
  // ssh would take the name for an option.
  if (name.starts_with('-'))
    return {"a machine's name does not begin with '-'", "options stand in ~/.ssh/config"};
  if (name.find('=') != std::string_view::npos)
    return {"wanted a machine's name first", "'alpha slots=2'"};
  const auto colon = name.find(':');
  if (colon != std::string_view::npos && name.rfind(':') == colon)
    return {"a machine's name has no ':'",
            "for '" + std::string(name.substr(0, colon)) + "' with its number of slots write '" +
                std::string(name.substr(0, colon)) +
                " slots=" + std::string(name.substr(colon + 1)) + "'"};
  if (name.size() > longest_name || !is_of(name, ".-_@:%"))
    return {"found '" + std::string(name) + "', wanted a machine's name: letters, digits, '.', '-'",
            "as you would type it behind ssh"};
  return {};
}

class HostLines {
 public:
  HostLines(std::string_view text, const std::string& name) : lines_(text, name) {}

  Result<std::vector<Host>> read() {
    while (const auto line = lines_.next()) add(*line);
    if (hosts_.empty() && lines_.ok()) lines_.fail({}, "it names no machine", "a line for each");
    if (!lines_.ok()) return lines_.errors();
    return std::move(hosts_);
  }

 private:
  void add(const std::vector<Word>& words) {
    const Word& name = words[0];
    if (const auto [what, hint] = fault_of_name(name.text); !what.empty())
      return lines_.fail(name, what, hint);
    const auto [first, is_new] = line_of_.emplace(name.text, name.position.line);
    if (!is_new)
      return lines_.fail(name,
                         "'" + std::string(name.text) + "' stands in line " +
                             std::to_string(first->second) + " already",
                         "give it all its slots there");
    Host host{std::string(name.text)};
    int most = most_slots;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const Word& word = words[i];
      const auto equals = word.text.find('=');
      const auto key = word.text.substr(0, equals);
      if (equals == std::string_view::npos || (key != "slots" && !is_bound(key))) {
        const bool is_near = key.starts_with("slot") || key.ends_with("slots");
        lines_.fail(word, "'" + std::string(word.text) + "' is not a known option of a machine",
                    is_near ? "did you mean 'slots=N'?" : "known: slots=N");
        continue;
      }
      const auto number = number_of(word.text.substr(equals + 1));
      if (!number || *number < 1 || *number > most_slots) {
        lines_.fail(word,
                    std::string(key) + " is '" + std::string(word.text.substr(equals + 1)) +
                        "', wanted a number from 1 to " + std::to_string(most_slots),
                    "");
        continue;
      }
      (is_bound(key) ? most : host.slots) = *number;
    }
    if (host.slots > most)
      lines_.fail(
          name,
          "slots=" + std::to_string(host.slots) + " is more than max_slots=" + std::to_string(most),
          "");
    hosts_.push_back(std::move(host));
  }

  static bool is_bound(std::string_view key) { return key == "max_slots" || key == "max-slots"; }

  LineReader lines_;
  std::map<std::string_view, int> line_of_;
  std::vector<Host> hosts_;
};

}  // namespace

std::string machine_of(const Host& host) { return host.name.substr(host.name.find('@') + 1); }

Result<std::vector<Host>> parse_hostfile(std::string_view text, const std::string& name) {
  return HostLines(text, name).read();
}

Result<std::vector<Host>> read_hostfile(const std::string& path) {
  const auto bytes = storage::disk_files()->read(path);
  if (!bytes)
    return Error{"error: " + bytes.error().text + "; wanted a hostfile, a machine a line"};
  return parse_hostfile(bytes->text(), path);
}

}  // namespace troupe::apps
