#include "cluster/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "catch.h"

namespace troupe::tests {

using Clock = std::chrono::steady_clock;

Process::Process(const Workplace& here, const std::vector<std::string>& arguments) {
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
    // The head is remembered where no other test looks.
    setenv("XDG_STATE_HOME", folder.c_str(), 1);
    unsetenv("TROUPE_HEAD");
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

/// False at the end of what it says, or of the wait.
bool Process::read_more(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  pollfd ready{output_, POLLIN, 0};
  if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) <= 0) return false;
  char bytes[4096];
  const auto count = read(output_, bytes, sizeof bytes);
  if (count <= 0) return false;
  said_.append(bytes, static_cast<std::size_t>(count));
  return true;
}

bool Process::says(const std::string& text, std::chrono::seconds patience) {
  const auto end = Clock::now() + patience;
  while (said_.find(text) == std::string::npos)
    if (!read_more(end)) return said_.find(text) != std::string::npos;
  return true;
}

void Process::send(int signal) const { kill(id_, signal); }

std::optional<int> Process::wait(std::chrono::seconds patience) {
  const auto end = Clock::now() + patience;
  while (read_more(end)) {
  }
  if (code_ || Clock::now() >= end) return code_;
  int status = 0;
  if (waitpid(id_, &status, 0) != id_) return {};
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return code_;
}

}  // namespace troupe::tests
