#include "cluster/stopped_thread.h"

#include <sched.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>

namespace troupe::tests {
namespace {

// A thread that computes may be outside of system calls each time.
constexpr int most_tries = 10000;

/// Returns whether a stopped thread waits in a system call, as threads do that are stuck. Calls
/// that manage memory do not count: malloc makes them with a lock that all threads need.
bool is_in_system_call(pid_t thread) {
  constexpr std::array memory_calls{SYS_mmap,     SYS_munmap,  SYS_mremap,
                                    SYS_mprotect, SYS_madvise, SYS_brk};
  long call = -1;
  std::ifstream file("/proc/" + std::to_string(thread) + "/syscall");
  return file >> call && call >= 0 && std::ranges::find(memory_calls, call) == memory_calls.end();
}

}  // namespace

std::vector<Thread> threads_of(pid_t process) {
  std::vector<Thread> threads;
  const auto folder = "/proc/" + std::to_string(process) + "/task";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    Thread thread{std::stoi(entry.path().filename()), {}};
    std::ifstream comm(entry.path() / "comm");
    std::getline(comm, thread.name);
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
  for (int tried = 1;; ++tried) {
    int status = 0;
    if (ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0) return;
    if (waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status)) return;
    if (is_in_system_call(thread) || tried == most_tries) break;
    if (ptrace(PTRACE_CONT, thread, nullptr, nullptr) != 0) return;
    sched_yield();
  }
  has_ = Has::stopped;
}

StoppedThread::~StoppedThread() {
  if (has_ == Has::stopped) (void)ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
}

void StoppedThread::see_end() {
  if (has_ == Has::stopped) waitpid(thread_, nullptr, __WALL);
  has_ = Has::ended;
}

}  // namespace troupe::tests
