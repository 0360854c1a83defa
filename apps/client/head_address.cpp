#include "apps/client/head_address.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "apps/hosts/interfaces.h"

namespace troupe::apps {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> memory() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state && *state)
    return fs::path(state) / "troupe" / "head";
  if (const char* home = std::getenv("HOME"); home && *home)
    return fs::path(home) / ".local" / "state" / "troupe" / "head";
  return {};
}

constexpr const char* file_in_state = "address";

/// Returns whether a file belongs to this user or to root. Anybody may make a folder in /tmp, and
/// commands below it must not address that person's head.
bool is_trusted(const fs::path& file) {
  struct stat found {};
  return stat(file.c_str(), &found) == 0 && (found.st_uid == geteuid() || found.st_uid == 0);
}

/// Returns the address file of the nearest head: in .troupe in the working folder or above.
std::optional<fs::path> nearest() {
  std::error_code error;
  fs::path folder = fs::current_path(error);
  for (; !error && !folder.empty(); folder = folder.parent_path()) {
    const auto file = folder / ".troupe" / file_in_state;
    if (is_trusted(file)) return file;
    if (folder == folder.root_path()) break;
  }
  return {};
}

std::string first_line(const fs::path& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

}  // namespace

std::string to_endpoint(const std::string& address) {
  if (address.find("://") != std::string::npos) return address;
  const auto colon = address.rfind(':');
  const bool has_port = colon != std::string::npos && address.find(']', colon) == std::string::npos;
  return "tcp://" + address + (has_port ? "" : ":" + std::to_string(usual_head_port));
}

Result<KnownHead> known_head(const std::string& given) {
  if (!given.empty()) return KnownHead{to_endpoint(given), {}};
  if (const char* named = std::getenv("TROUPE_HEAD"); named && *named)
    return KnownHead{to_endpoint(named), {}};
  for (const auto& path : {nearest(), memory()}) {
    if (!path) continue;
    if (auto endpoint = first_line(*path); !endpoint.empty())
      return KnownHead{std::move(endpoint), path->string()};
  }
  return Error{
      "no head is known: give --head ADDRESS, set TROUPE_HEAD, or start one here with `troupe "
      "head`"};
}

Result<std::string> find_head(const std::string& given) {
  auto known = known_head(given);
  if (!known) return known.error();
  return std::move(known->endpoint);
}

std::string shared_secret_path() {
  const auto path = memory();
  return path ? (path->parent_path() / "secret").string() : std::string();
}

void remember_head(const std::string& endpoint, const std::string& state) {
  // A head that listens at all addresses of this machine cannot be dialed at that address.
  const std::string line = reached_at(endpoint, "127.0.0.1") + "\n";
  // If a write fails, users can still pass --head.
  std::ofstream(fs::path(state) / file_in_state) << line;
  const auto path = memory();
  if (!path) return;
  std::error_code error;
  fs::create_directories(path->parent_path(), error);
  std::ofstream(*path) << line;
}

void forget_head(const std::string& state) {
  std::error_code error;
  fs::remove(fs::path(state) / file_in_state, error);
}

}  // namespace troupe::apps
