#include "apps/client/head_address.h"

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

}  // namespace

std::string to_endpoint(const std::string& address) {
  if (address.find("://") != std::string::npos) return address;
  const auto colon = address.rfind(':');
  const bool has_port = colon != std::string::npos && address.find(']', colon) == std::string::npos;
  return "tcp://" + address + (has_port ? "" : ":" + std::to_string(usual_head_port));
}

Result<std::string> find_head(const std::string& given) {
  if (!given.empty()) return to_endpoint(given);
  if (const char* named = std::getenv("TROUPE_HEAD"); named && *named) return to_endpoint(named);
  std::string last;
  if (const auto path = memory()) std::getline(std::ifstream(*path), last);
  if (last.empty())
    return Error{
        "no head is known: give --head ADDRESS, set TROUPE_HEAD, or start one here with `troupe "
        "head`"};
  return last;
}

std::string shared_secret_path() {
  const auto path = memory();
  return path ? (path->parent_path() / "secret").string() : std::string();
}

void remember_head(const std::string& endpoint) {
  const auto path = memory();
  if (!path) return;
  std::error_code error;
  fs::create_directories(path->parent_path(), error);
  // A head that listens at all addresses of this machine cannot be dialed at that address.
  std::ofstream(*path) << reached_at(endpoint, "127.0.0.1")
                       << "\n";  // If the write fails, users can still pass --head.
}

}  // namespace troupe::apps
