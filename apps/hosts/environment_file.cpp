#include "apps/hosts/environment_file.h"

#include <algorithm>
#include <cstdlib>

#include "apps/hosts/line_reader.h"
#include "storage/files/files.h"

namespace troupe::apps {
namespace {

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && is_letter(text[0]) &&
         std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

void set(Environment& environment, std::string name, std::string value) {
  const auto found = std::ranges::find(environment, name, &Environment::value_type::first);
  if (found != environment.end())
    found->second = std::move(value);
  else
    environment.emplace_back(std::move(name), std::move(value));
}

}  // namespace

Result<Environment> parse_environment(std::string_view text, const std::string& name) {
  LineReader reader(text, name);
  Environment environment;
  int number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    auto line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos || line[begin] == '#') continue;
    const auto equals = line.find('=');
    const auto variable = line.substr(begin, equals == std::string_view::npos ? 0 : equals - begin);
    if (!is_name(variable)) {
      reader.fail({line, {number, static_cast<int>(begin) + 1}},
                  "wanted NAME=VALUE, the name of letters, digits and '_'", "");
      continue;
    }
    set(environment, std::string(variable), std::string(line.substr(equals + 1)));
  }
  if (!reader.ok()) return reader.errors();
  return environment;
}

Result<Environment> read_deepspeed_env() {
  const auto files = storage::disk_files();
  const char* home = std::getenv("HOME");
  Environment environment;
  for (const std::string& folder : {std::string(home ? home : "."), std::string(".")}) {
    const std::string path = folder + "/.deepspeed_env";
    const auto there = files->exists(path);
    if (!there.ok()) return Error{"error: " + there.error().text};
    if (!*there) continue;
    const auto bytes = files->read(path);
    if (!bytes) return Error{"error: " + bytes.error().text};
    auto read = parse_environment(bytes->text(), path);
    if (!read) return read.error();
    for (auto& [name, value] : *read) set(environment, std::move(name), std::move(value));
  }
  return environment;
}

}  // namespace troupe::apps
