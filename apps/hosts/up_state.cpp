#include "apps/hosts/up_state.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <utility>

#include "core/json.h"
#include "core/value.h"
#include "storage/files/files.h"

namespace troupe::apps {
namespace {

bool is_name(const std::string& text) {
  return text.starts_with("up-") && std::ranges::all_of(text.substr(3), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

void UpState::add(const std::string& host) {
  if (std::ranges::find(hosts, host) == hosts.end()) hosts.push_back(host);
}

bool UpState::remove(const std::string& host) { return std::erase(hosts, host) > 0; }

UpState new_up(const std::string& head) {
  std::random_device random;
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "up-%08x%08x", random(), random());
  return {name.data(), head, {}};
}

Result<std::string> up_state_path() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state && *state)
    return std::string(state) + "/troupe/up.json";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::string(home) + "/.local/state/troupe/up.json";
  return Error{
      "neither HOME nor XDG_STATE_HOME is set: there is no place to remember what was "
      "started"};
}

Result<std::optional<UpState>> read_up(const std::string& path) {
  const auto files = storage::disk_files();
  const auto there = files->exists(path);
  if (!there.ok()) return there.error();
  if (!*there) return std::optional<UpState>();
  const auto bytes = files->read(path);
  if (!bytes) return bytes.error();
  const auto value = parse_json(bytes->text());
  const Value* hosts = value ? value->find("hosts") : nullptr;
  UpState state;
  if (hosts && hosts->list())
    for (const auto& host : *hosts->list())
      if (host.text()) state.hosts.push_back(*host.text());
  if (value) state.name = text_in(*value, "name"), state.head = text_in(*value, "head");
  // The name is inserted into a script.
  if (!is_name(state.name) || state.hosts.empty())
    return Error{path +
                 ": is not what `troupe up` writes; look for processes with TROUPE_UP in "
                 "their environment on the machines, end them, and remove this file"};
  return std::optional(std::move(state));
}

Status write_up(const std::string& path, const UpState& state) {
  const auto files = storage::disk_files();
  if (state.hosts.empty()) return storage::remove_if_there(*files, path);
  if (auto made = files->make_directory(storage::parent_of(path)); !made) return made;
  Value value = Value::Map{};
  value.set("name", state.name);
  value.set("head", state.head);
  Value::List hosts;
  for (const auto& host : state.hosts) hosts.emplace_back(host);
  value.set("hosts", std::move(hosts));
  return storage::replace_file(*files, path, to_json_lines(value) + "\n");
}

}  // namespace troupe::apps
