#include "peer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "ends.h"

extern char** environ;

namespace troupe::transport {

Peer::Peer(const std::vector<std::string>& words) {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::string program = here / CHANNEL_PEER;
  std::vector<char*> arguments{program.data()};
  std::vector<std::string> copies = words;
  for (auto& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn(&id_, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  input_ = in[1];
  output_ = out[0];
}

Peer::~Peer() {
  kill();
  close(output_);
}

void Peer::say(const std::string& line) {
  const std::string text = line + "\n";
  (void)!write(input_, text.data(), text.size());
}

std::string Peer::line() {
  for (;;) {
    if (const auto end = read_.find('\n'); end != std::string::npos) {
      const std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return line;
    }
    pollfd what{output_, POLLIN, 0};
    char more[256];
    const auto limit = std::chrono::milliseconds(wait_limit).count();
    if (poll(&what, 1, static_cast<int>(limit)) <= 0) return {};
    const auto got = read(output_, more, sizeof more);
    if (got <= 0) return {};
    read_.append(more, static_cast<std::size_t>(got));
  }
}

void Peer::kill() {
  if (id_ <= 0) return;
  ::kill(id_, SIGKILL);
  exit_status();
}

int Peer::exit_status() {
  if (id_ <= 0) return -1;
  close(input_);
  int status = 0;
  waitpid(id_, &status, 0);
  id_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace troupe::transport
