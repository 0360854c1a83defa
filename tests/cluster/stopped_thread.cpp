#include "cluster/stopped_thread.h"

#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

namespace troupe::tests {

std::vector<Thread> threads_of(pid_t process) {
  std::vector<Thread> threads;
  const auto folder = "/proc/" + std::to_string(process) + "/task";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    Thread thread{std::stoi(entry.path().filename()), {}};
    std::ifstream(entry.path() / "comm") >> thread.name;
    threads.push_back(std::move(thread));
  }
  std::ranges::sort(threads, {}, &Thread::id);
  return threads;
}

StoppedThread::StoppedThread(pid_t thread) : thread_(thread) {
  if (ptrace(PTRACE_SEIZE, thread, nullptr, PTRACE_O_EXITKILL) != 0) {
    if (errno != ESRCH) has_ = Has::no_right;
    return;
  }
  if (ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0) return;
  int status = 0;
  if (waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status)) has_ = Has::stopped;
}

StoppedThread::~StoppedThread() {
  if (has_ == Has::stopped) (void)ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
}

void StoppedThread::see_end() {
  if (has_ == Has::stopped) waitpid(thread_, nullptr, __WALL);
  has_ = Has::ended;
}

}  // namespace troupe::tests
