#include "apps/real/real_processes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "apps/machine/keeper.h"
#include "core/descriptor.h"
#include "core/threads/event_fd.h"
#include "core/threads/thread_name.h"

namespace troupe::apps {
namespace {

constexpr std::size_t most_last_words = 4096;
constexpr int not_started = 127;

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

/// A process from its order to its end.
struct Child {
  ProcessOrder order;
  Loop& loop;
  Processes::Ended told;
  std::mutex mutex = {};
  bool is_dropped = false;  // Nobody hears of its end any more.

  // Used by the thread of the processes.
  pid_t process = -1;
  Descriptor death = {};   // Readable once the process has ended.
  Descriptor output = {};  // The stderr of the process.
  std::string last_words = {};

  void start();
  bool read_more();
  ProcessEnd take_end();
  void drop();
  bool has_been_dropped();
};

void Child::drop() {
  const std::lock_guard lock(mutex);
  is_dropped = true;
}

bool Child::has_been_dropped() {
  const std::lock_guard lock(mutex);
  return is_dropped;
}

void Child::start() {
  auto words = order.arguments;
  words.insert(words.begin(), "troupe");
  auto pointers = pointers_to(words);
  const pid_t parent = getpid();
  auto added = order.environment;
  added.push_back(std::string(keeper_variable) + "=" + std::to_string(parent));
  auto environment = pointers_to(added);
  // The process' own environment follows. Of two variables with one name the first counts.
  environment.pop_back();
  for (char** variable = environ; *variable; ++variable) environment.push_back(*variable);
  environment.push_back(nullptr);
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  output = Descriptor(ends[0]);
  const Descriptor input(ends[1]);
  fcntl(output.number(), F_SETFL, O_NONBLOCK);
  process = fork();
  if (process == 0) become(pointers.data(), environment.data(), input.number(), parent);
  if (process > 0) death = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
}

/// Returns false if there is nothing more to read now.
bool Child::read_more() {
  char bytes[4096];
  const auto count = read(output.number(), bytes, sizeof bytes);
  if (count <= 0) return false;
  [[maybe_unused]] const auto written =
      write(STDERR_FILENO, bytes, static_cast<std::size_t>(count));
  last_words.append(bytes, static_cast<std::size_t>(count));
  if (last_words.size() > most_last_words) last_words.erase(0, last_words.size() - most_last_words);
  return true;
}

/// Reads the rest of what a process that has ended said.
ProcessEnd Child::take_end() {
  while (output && read_more()) {
  }
  while (last_words.ends_with('\n')) last_words.pop_back();
  int status = 0;
  waitpid(process, &status, 0);
  return {process, WIFEXITED(status) ? WEXITSTATUS(status) : 0,
          WIFSIGNALED(status) ? WTERMSIG(status) : 0, std::move(last_words)};
}

}  // namespace

/// Does everything with processes on one thread. PR_SET_PDEATHSIG kills a process when the thread
/// that started it ends, so this thread lives as long as the object.
class RealProcesses::Work {
 public:
  Work() : thread_([this] { run(); }) {}
  ~Work() {
    post([this] { is_ending_ = true; });
    thread_.join();
  }

  void post(Loop::Task task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    bell_.ring();
  }

  void start(const std::shared_ptr<Child>& child) {
    post([this, child] {
      if (child->has_been_dropped()) return;
      child->start();
      if (child->death) return children_.push_back(child);
      const std::string why = strerror(errno);
      if (child->process > 0) {
        kill(child->process, SIGKILL);
        waitpid(child->process, nullptr, 0);
      }
      tell(child, {child->process, not_started, 0, "a process cannot be started: " + why});
    });
  }

  /// Signals a process that has not ended: until then its id is no other's.
  void signal(const std::shared_ptr<Child>& child, int signal) {
    post([this, child, signal] {
      if (std::ranges::find(children_, child) != children_.end()) kill(child->process, signal);
    });
  }

 private:
  void run() {
    name_thread("processes");
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    while (!is_ending_ || !children_.empty()) {
      std::vector<pollfd> news{{bell_.descriptor(), POLLIN, 0}};
      for (const auto& child : children_) {
        news.push_back({child->death.number(), POLLIN, 0});
        news.push_back({child->output.number(), POLLIN, 0});
      }
      if (poll(news.data(), news.size(), -1) < 0) continue;
      auto of_child = news.begin() + 1;
      for (auto child = children_.begin(); child != children_.end(); of_child += 2) {
        const bool has_ended = of_child[0].revents != 0;
        // The process may live on after it has closed its output.
        if (of_child[1].revents != 0 && !(*child)->read_more() && !has_ended)
          (*child)->output = Descriptor();
        if (has_ended) tell(*child, (*child)->take_end());
        child = has_ended ? children_.erase(child) : std::next(child);
      }
      if (bell_.clear()) do_tasks();
    }
  }

  void do_tasks() {
    std::vector<Loop::Task> tasks;
    {
      const std::lock_guard lock(mutex_);
      tasks.swap(tasks_);
    }
    for (const auto& task : tasks) task();
  }

  static void tell(const std::shared_ptr<Child>& child, ProcessEnd end) {
    // The loop of a dropped process may be gone.
    const std::lock_guard lock(child->mutex);
    if (child->is_dropped) return;
    child->loop.post([child, end = std::move(end)] {
      if (!child->has_been_dropped()) child->told(end);
    });
  }

  std::mutex mutex_;
  std::vector<Loop::Task> tasks_;
  EventFd bell_;

  // Used by the thread.
  std::list<std::shared_ptr<Child>> children_;
  bool is_ending_ = false;
  std::thread thread_;
};

namespace {

template <class Work>
class Started final : public ChildProcess {
 public:
  Started(Work& work, std::shared_ptr<Child> child) : work_(work), child_(std::move(child)) {}
  ~Started() override {
    child_->drop();
    work_.signal(child_, SIGKILL);
  }
  void signal(Signal signal) override {
    work_.signal(child_, signal == Signal::kill ? SIGKILL : signal_of_keeper());
  }

 private:
  Work& work_;
  const std::shared_ptr<Child> child_;
};

}  // namespace

RealProcesses::RealProcesses() : work_(std::make_unique<Work>()) {}
RealProcesses::~RealProcesses() = default;

std::unique_ptr<ChildProcess> RealProcesses::start(ProcessOrder order, Loop& loop, Ended ended) {
  auto child = std::shared_ptr<Child>(new Child{std::move(order), loop, std::move(ended)});
  work_->start(child);
  return std::make_unique<Started<Work>>(*work_, std::move(child));
}

}  // namespace troupe::apps
