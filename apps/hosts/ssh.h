#pragma once

#include <string>
#include <utility>
#include <vector>

namespace troupe::apps {

/// A word as a shell reads it back.
std::string shell_quoted(const std::string& word);
/// Words with blanks between.
std::string shell_line(const std::vector<std::string>& words);

/// Replaces each marker of a script, wherever it stands, by its text.
using Fillings = std::vector<std::pair<std::string, std::string>>;
std::string filled(std::string text, const Fillings& fillings);

/// The command that runs a script of the POSIX shell on a machine by the system's ssh, whatever
/// shell its user has there: without questions, and with an end to the wait for an answer. The
/// script goes to its standard input: scripts hold secrets, and every user of a machine can read
/// command lines. What else there is to say to ssh (ports, users, keys) stands in ~/.ssh/config.
std::vector<std::string> over_ssh(const std::string& host);

/// Why a machine could not be reached, and what to do about it; both empty where ssh itself did not
/// fail. `said` is what ssh wrote last.
struct SshFailure {
  std::string found;
  std::string fix;
  bool is_before_login = false;  // Certainly nothing has run there.
};
SshFailure ssh_failure(const std::string& host, int code, const std::string& said);

}  // namespace troupe::apps
