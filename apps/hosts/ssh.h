#pragma once

#include <string>
#include <utility>
#include <vector>

namespace troupe::apps {

/// Quotes a word for the shell.
std::string shell_quoted(const std::string& word);
/// Quotes words and joins them with blanks.
std::string shell_line(const std::vector<std::string>& words);

/// Replaces each marker in a script by its text, wherever it stands.
using Fillings = std::vector<std::pair<std::string, std::string>>;
std::string filled(std::string text, const Fillings& fillings);

/// Returns the command that runs a POSIX shell script on a machine by the system's ssh, whatever
/// the user's login shell is. It asks no questions and has a timeout. The script goes to its
/// standard input: scripts hold secrets, and every user of a machine can read command lines. Ports,
/// users and keys are set in ~/.ssh/config.
std::vector<std::string> over_ssh(const std::string& host);

/// The reason why a machine could not be reached, and what to do; both empty if ssh itself did not
/// fail. `said` is the last output of ssh.
struct SshFailure {
  std::string found;
  std::string fix;
  bool is_before_login = false;  // Certainly nothing has run on the machine.
};
SshFailure ssh_failure(const std::string& host, int code, const std::string& said);

}  // namespace troupe::apps
