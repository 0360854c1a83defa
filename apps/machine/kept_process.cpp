#include "apps/machine/kept_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>

#include "core/threads/thread_name.h"

namespace troupe::apps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t most_last_words = 4096;
constexpr int not_started = 127;
constexpr const char* keeper_variable = "TROUPE_KEPT_BY";

void keep_end_of(std::string& text) {
  if (text.size() > most_last_words) text.erase(0, text.size() - most_last_words);
}

int milliseconds_until(Clock::time_point time) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - Clock::now());
  return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

/// Runs in the child after fork. It must not allocate, since another thread may have held the
/// allocator's lock.
[[noreturn]] void become(char* const* words, char* const* environment, int output, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(not_started);  // The parent has died meanwhile.
  // The terminal's Ctrl-C goes only to the parent, which asks its children to end in order.
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(output, STDERR_FILENO);
  syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0);
  execve("/proc/self/exe", words, environment);
  _exit(not_started);
}

/// Returns pointers for exec, with a null at the end.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::string to_text(const ProcessEnd& end) {
  if (end.signal == 0) return "ended with code " + std::to_string(end.code);
  return "was ended by signal " + std::to_string(end.signal) + " (" + strsignal(end.signal) + ")";
}

int signal_of_keeper() { return SIGRTMIN; }

pid_t keeper_of_this_process() {
  // A process that a kept process starts inherits the variable, but has another parent.
  const char* text = std::getenv(keeper_variable);
  const auto keeper = static_cast<pid_t>(text ? std::strtol(text, nullptr, 10) : 0);
  return keeper == getppid() ? keeper : 0;
}

/// A child process and its descriptors, which the destructor closes.
struct KeptProcess::Child {
  pid_t process = -1;
  int death = -1;   // Readable once the process has ended.
  int output = -1;  // The read end of the child's stderr.

  Child() = default;
  Child(Child&& other) noexcept
      : process(other.process),
        death(std::exchange(other.death, -1)),
        output(std::exchange(other.output, -1)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    for (const int file : {death, output})
      if (file >= 0) close(file);
  }

  /// Returns false if there is nothing more to read now.
  bool read_more(std::string& last_words) const {
    char bytes[4096];
    const auto count = read(output, bytes, sizeof bytes);
    if (count <= 0) return false;
    [[maybe_unused]] const auto written =
        write(STDERR_FILENO, bytes, static_cast<std::size_t>(count));
    last_words.append(bytes, static_cast<std::size_t>(count));
    keep_end_of(last_words);
    return true;
  }
};

KeptProcess::KeptProcess(KeepOptions options) : options_(std::move(options)) {
  // PR_SET_PDEATHSIG kills a child when the thread that started it ends. So one thread that lives
  // as long as this object starts all children.
  thread_ = std::thread([this] { keep(); });
}

KeptProcess::~KeptProcess() {
  ask_to_end();
  thread_.join();
}

void KeptProcess::ask_to_end() {
  {
    const std::lock_guard lock(mutex_);
    shall_end_ = true;
  }
  bell_.ring();
}

bool KeptProcess::shall_end() const {
  const std::lock_guard lock(mutex_);
  return shall_end_;
}

void KeptProcess::keep() {
  name_thread("keeping alive");
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  transport::Backoff backoff(options_.backoff, std::random_device{}());
  while (!shall_end()) {
    const auto began = Clock::now();
    const ProcessEnd end = watch(start());
    const bool again = options_.ended(end);
    if (shall_end() || !again) return;
    if (Clock::now() - began >= options_.while_lived) backoff.reset();
    bell_.wait_for(std::chrono::ceil<std::chrono::milliseconds>(backoff.next()));
  }
}

KeptProcess::Child KeptProcess::start() {
  auto words = options_.arguments();
  words.insert(words.begin(), "troupe");
  auto pointers = pointers_to(words);
  const pid_t parent = getpid();
  auto added = options_.environment();
  added.push_back(std::string(keeper_variable) + "=" + std::to_string(parent));
  auto environment = pointers_to(added);
  // The process' own environment follows. Of two variables with one name the first counts.
  environment.pop_back();
  for (char** variable = environ; *variable; ++variable) environment.push_back(*variable);
  environment.push_back(nullptr);
  Child child;
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) return child;
  child.output = ends[0];
  fcntl(child.output, F_SETFL, O_NONBLOCK);
  child.process = fork();
  if (child.process == 0) become(pointers.data(), environment.data(), ends[1], parent);
  close(ends[1]);
  if (child.process > 0) child.death = static_cast<int>(syscall(SYS_pidfd_open, child.process, 0));
  return child;
}

ProcessEnd KeptProcess::watch(Child child) {
  ProcessEnd end;
  end.process = child.process;
  if (child.death < 0) {
    end.code = not_started;
    end.last_words = "a process cannot be started: " + std::string(strerror(errno));
    if (child.process > 0) {
      kill(child.process, SIGKILL);
      waitpid(child.process, nullptr, 0);
    }
    return end;
  }
  bool asked = false;
  auto deadline = Clock::time_point::max();
  for (;;) {
    // A rung bell stays readable, so it is polled only until it was noticed.
    pollfd news[] = {{child.death, POLLIN, 0},
                     {child.output, POLLIN, 0},
                     {asked ? -1 : bell_.descriptor(), POLLIN, 0}};
    const bool forever = deadline == Clock::time_point::max();
    const int ready = poll(news, 3, forever ? -1 : milliseconds_until(deadline));
    if (ready == 0) {
      kill(child.process, SIGKILL);
      deadline = Clock::time_point::max();
      continue;
    }
    if (ready < 0) continue;
    if (news[2].revents != 0) {
      asked = true;
      kill(child.process, signal_of_keeper());
      deadline = Clock::now() + options_.end_patience;
    }
    // The child may live on after it has closed its output.
    const bool told = news[1].revents != 0 && child.read_more(end.last_words);
    if (news[1].revents != 0 && !told && news[0].revents == 0) {
      close(child.output);
      child.output = -1;
    }
    if (news[0].revents != 0) break;
  }
  while (child.output >= 0 && child.read_more(end.last_words)) {
  }
  while (end.last_words.ends_with('\n')) end.last_words.pop_back();
  int status = 0;
  waitpid(child.process, &status, 0);
  end.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return end;
}

}  // namespace troupe::apps
