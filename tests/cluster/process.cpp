#include "cluster/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "catch.h"

namespace troupe::tests {

using Clock = std::chrono::steady_clock;

Process::Process(const Workplace& here, const std::vector<std::string>& arguments,
                 std::size_t descriptors) {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  std::vector<std::string> words{TROUPE_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const std::string folder = here.path().string();
  id_ = fork();
  REQUIRE(id_ >= 0);
  if (id_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (chdir(folder.c_str()) != 0) _exit(126);
    // The head remembers its address in a folder that no other test uses.
    setenv("XDG_STATE_HOME", folder.c_str(), 1);
    unsetenv("TROUPE_HEAD");
    const rlimit limit{descriptors, descriptors};
    if (descriptors > 0 && setrlimit(RLIMIT_NOFILE, &limit) != 0) _exit(126);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    execv(TROUPE_PROGRAM, pointers.data());
    _exit(127);
  }
  close(ends[1]);
  output_ = ends[0];
}

Process::~Process() {
  if (!code_) {
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  close(output_);
}

/// Reads output. Returns false at its end, or after the wait.
bool Process::read_more(Clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
  pollfd ready{output_, POLLIN, 0};
  const auto patience = static_cast<int>(std::max<std::int64_t>(0, left.count()));
  if (poll(&ready, 1, patience) <= 0) return false;
  char bytes[4096];
  const auto count = read(output_, bytes, sizeof bytes);
  if (count <= 0) return false;
  said_.append(bytes, static_cast<std::size_t>(count));
  return true;
}

std::size_t Process::find(const std::string& text, std::size_t from,
                          std::chrono::seconds patience) {
  const auto end = Clock::now() + patience;
  while (said_.find(text, from) == std::string::npos && read_more(end)) {
  }
  return said_.find(text, from);
}

bool Process::says(const std::string& text, std::chrono::seconds patience) {
  return find(text, 0, patience) != std::string::npos;
}

bool Process::says_once_more(const std::string& text, std::chrono::seconds patience) {
  const auto found = find(text, seen_, patience);
  if (found == std::string::npos) return false;
  seen_ = found + text.size();
  return true;
}

void Process::listen(std::chrono::milliseconds time) {
  const auto end = Clock::now() + time;
  while (read_more(end)) {
  }
}

void Process::see_all() {
  while (read_more(Clock::now())) {
  }
  seen_ = said_.size();
}

void Process::send(int signal) const { kill(id_, signal); }

std::optional<int> Process::wait(std::chrono::seconds patience) {
  const auto end = Clock::now() + patience;
  while (read_more(end)) {
  }
  if (code_) return code_;
  int status = 0;
  if (waitpid(id_, &status, Clock::now() >= end ? WNOHANG : 0) != id_) return {};
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return code_;
}

}  // namespace troupe::tests
