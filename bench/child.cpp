#include "bench/child.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace troupe::bench {
namespace {

[[noreturn]] void become(const ChildOrder& order) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (int i = 0; i < order.cores; ++i) CPU_SET(static_cast<std::size_t>(i), &cores);
  sched_setaffinity(0, sizeof cores, &cores);
  if (chdir(order.folder.c_str()) != 0) _exit(126);
  if (!order.errors.empty()) {
    const int file = open(order.errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) _exit(126);
    dup2(file, STDERR_FILENO);
  }
  for (const auto& [name, value] : order.environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> words;
  for (const auto& word : order.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  _exit(127);
}

}  // namespace

Background::Background(const ChildOrder& order) {
  id_ = fork();
  if (id_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  become(order);
}

Background::~Background() {
  if (id_ <= 0) return;
  kill(id_, SIGKILL);
  waitpid(id_, nullptr, 0);
}

void Background::end() {
  if (id_ <= 0) return;
  kill(id_, SIGTERM);
  waitpid(id_, nullptr, 0);
  id_ = -1;
}

std::vector<pid_t> children_of(pid_t process) {
  std::vector<pid_t> children;
  std::error_code error;
  const auto threads = "/proc/" + std::to_string(process) + "/task";
  for (const auto& thread : std::filesystem::directory_iterator(threads, error)) {
    std::ifstream file(thread.path() / "children");
    for (pid_t child; file >> child;) children.push_back(child);
  }
  return children;
}

std::optional<ChildResult> run_child(const ChildOrder& order) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    dup2(ends[1], STDOUT_FILENO);
    become(order);
  }
  close(ends[1]);
  ChildResult result;
  if (std::FILE* output = child > 0 ? fdopen(ends[0], "r") : nullptr) {
    char* line = nullptr;
    std::size_t size = 0;
    for (ssize_t length; (length = getline(&line, &size, output)) > 0;) {
      result.lines.emplace_back(line,
                                static_cast<std::size_t>(length - (line[length - 1] == '\n')));
      result.arrivals.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    std::free(line);
    std::fclose(output);
  }
  if (child < 0) return std::nullopt;
  int status = 0;
  struct rusage usage = {};
  wait4(child, &status, 0, &usage);
  result.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (result.exit_status == 127) return std::nullopt;
  result.peak_mib = static_cast<double>(usage.ru_maxrss) / 1024;
  return result;
}

}  // namespace troupe::bench
