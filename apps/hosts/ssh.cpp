#include "apps/hosts/ssh.h"

#include <algorithm>
#include <string_view>

#include "apps/hosts/children.h"
#include "core/printable.h"

namespace troupe::apps {
namespace {

constexpr int ssh_failed = 255;

struct Known {
  std::string_view said;
  std::string_view found;
  std::string_view fix;  // HOST stands for the machine's name.
};

/// Messages that ssh prints if it fails before a shell runs on the machine. A connection that
/// breaks later prints none of them.
constexpr std::string_view before_login[] = {
    "IDENTIFICATION HAS CHANGED", "Host key verification failed",
    "Permission denied",          "ssh: Could not resolve",
    "ssh: connect to host",       "Connection timed out during banner exchange",
    "kex_exchange_identification"};

constexpr Known known[] = {
    {"IDENTIFICATION HAS CHANGED", "its host key has changed",
     "find out why before you go on; then: ssh-keygen -R HOST"},
    {"Host key verification failed", "ssh does not know its host key",
     "ssh HOST once by hand and compare the key, or add it to ~/.ssh/known_hosts"},
    {"Permission denied", "ssh asks for a password", "ssh-copy-id HOST"},
    {"Could not resolve", "no machine has this name",
     "correct the name in the hostfile, or add it to /etc/hosts or ~/.ssh/config"},
    {"Connection refused", "no ssh server listens there",
     "start sshd on it, or name its port in ~/.ssh/config"},
    {"timed out", "it does not answer", "is it on, and does a firewall let port 22 through?"},
    {"No route to host", "there is no network route to it", "is it on, and in the same network?"},
};

}  // namespace

std::string shell_quoted(const std::string& word) {
  const bool is_plain = !word.empty() && std::ranges::all_of(word, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:=,@%+").find(c) != std::string_view::npos;
  });
  if (is_plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const auto& word : words) line += (line.empty() ? "" : " ") + shell_quoted(word);
  return line;
}

std::string filled(std::string text, const Fillings& fillings) {
  for (const auto& [what, by] : fillings)
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
      text.replace(at, what.size(), by);
  return text;
}

std::vector<std::string> over_ssh(const std::string& host) {
  return {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=10",
          "--",  host, "exec sh -s"};
}

SshFailure ssh_failure(const std::string& host, int code, const std::string& said) {
  if (code == no_such_program && said.empty())
    return {"there is no ssh on this machine", "install it: apt install openssh-client", true};
  if (code != ssh_failed) return {};
  const bool is_before_login = std::ranges::any_of(
      before_login, [&](auto words) { return said.find(words) != std::string::npos; });
  for (const auto& [words, found, fix] : known) {
    if (said.find(words) == std::string::npos) continue;
    std::string with_host(fix);
    if (const auto at = with_host.find("HOST"); at != std::string::npos)
      with_host.replace(at, 4, host);
    return {std::string(found), with_host, is_before_login};
  }
  const auto end = said.find_last_not_of("\r\n");
  const std::string words =
      end == std::string::npos ? "it did not say why" : said.substr(0, end + 1);
  return {"ssh failed: " + printable(words), "try it by hand: ssh " + host, is_before_login};
}

}  // namespace troupe::apps
