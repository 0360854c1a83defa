#include "apps/processes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "apps/machine/keeper.h"
#include "apps/machine/kept_process.h"
#include "apps/program.h"
#include "apps/real/real_processes.h"
#include "catch.h"
#include "core/descriptor.h"
#include "core/threads/event_fd.h"
#include "core/threads/real_env.h"

namespace troupe::apps {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 60s;
constexpr int obeyed = 5;  // The exit code of a child that its keeper asked to end.

/// Returns the order for a child: this program, which runs one hidden test. `does` is a word that
/// the hidden test knows. The child says by `path`, a named pipe, that it has begun.
ProcessOrder child(const std::string& does, const std::string& path = "") {
  return {{"the child of a test of processes"},
          {"TROUPE_TEST_CHILD=" + does, "TROUPE_TEST_PIPE=" + path}};
}

TEST_CASE("the child of a test of processes", "[.]") {
  const std::string does = std::getenv("TROUPE_TEST_CHILD");
  const std::string path = std::getenv("TROUPE_TEST_PIPE");
  sigset_t of_keeper;
  sigemptyset(&of_keeper);
  sigaddset(&of_keeper, signal_of_keeper());
  sigprocmask(SIG_BLOCK, &of_keeper, nullptr);
  const int pipe = path.empty() ? -1 : open(path.c_str(), O_WRONLY);
  if (pipe >= 0 && write(pipe, "b", 1) != 1) _exit(1);
  if (does == "say") {
    constexpr char words[] = "first words\nlast words\n";
    (void)!write(STDERR_FILENO, words, sizeof words - 1);
    _exit(7);
  }
  if (does == "tell keeper") _exit(keeper_of_this_process() == getppid() ? 0 : 1);
  int signal = 0;
  if (does == "obey" && sigwait(&of_keeper, &signal) == 0) _exit(obeyed);
  for (;;) pause();
}

/// A named pipe by which a child says that it has begun, and by its end that it is gone.
class Pipe {
 public:
  Pipe() { REQUIRE(mkfifo(path().c_str(), 0600) == 0); }

  std::string path() const { return (here_.path() / "pipe").string(); }
  /// Waits until the next child has begun.
  void wait_for_child() {
    file_ = Descriptor(open(path().c_str(), O_RDONLY));
    REQUIRE(next_byte() == 1);
  }
  /// Waits until the child is gone.
  void wait_for_end() { CHECK(next_byte() == 0); }

 private:
  ssize_t next_byte() {
    char byte = 0;
    return read(file_.number(), &byte, 1);
  }

  const tests::Workplace here_;
  Descriptor file_;
};

/// The end of a process, and how often it was heard.
struct Heard {
  std::promise<ProcessEnd> end;
  std::atomic<int> times = 0;

  Processes::Ended hears() {
    return [this](const ProcessEnd& one) {
      if (++times == 1) end.set_value(one);
    };
  }
  ProcessEnd get() {
    auto future = end.get_future();
    REQUIRE(future.wait_for(patience) == std::future_status::ready);
    return future.get();
  }
};

/// Runs all tasks that the loop has now.
void settle(Loop& loop) {
  EventFd done;
  loop.post([&done] { done.ring(); });
  done.wait();
}

TEST_CASE("a process tells its exit code and its last words, once", "[apps]") {
  RealEnv env;
  RealProcesses processes;
  const auto loop = env.make_loop({"test"});
  Heard heard;
  const auto process = processes.start(child("say"), *loop, heard.hears());
  const auto end = heard.get();
  CHECK(end.process > 0);
  CHECK(end.code == 7);
  CHECK(end.signal == 0);
  CHECK(end.last_words == "first words\nlast words");
  CHECK(to_text(end) == "ended with code 7");
  process->signal(ChildProcess::Signal::kill);
  settle(*loop);
  CHECK(heard.times == 1);
}

TEST_CASE("a process knows its keeper", "[apps]") {
  RealEnv env;
  RealProcesses processes;
  const auto loop = env.make_loop({"test"});
  Heard heard;
  const auto process = processes.start(child("tell keeper"), *loop, heard.hears());
  CHECK(heard.get().code == 0);
}

TEST_CASE("a process that is asked to end does so by itself, and one that is killed does not",
          "[apps]") {
  RealEnv env;
  RealProcesses processes;
  const auto loop = env.make_loop({"test"});
  Pipe obeying, killed;
  Heard end_of_obeying, end_of_killed;
  const auto one = processes.start(child("obey", obeying.path()), *loop, end_of_obeying.hears());
  const auto other = processes.start(child("obey", killed.path()), *loop, end_of_killed.hears());
  obeying.wait_for_child();
  killed.wait_for_child();
  one->signal(ChildProcess::Signal::end);
  other->signal(ChildProcess::Signal::kill);
  const auto obeyed_end = end_of_obeying.get(), killed_end = end_of_killed.get();
  CHECK(obeyed_end.code == obeyed);
  CHECK(obeyed_end.signal == 0);
  CHECK(killed_end.signal == SIGKILL);
  CHECK(obeyed_end.process != killed_end.process);
}

TEST_CASE("a process that is dropped is killed, and nobody hears of its end", "[apps]") {
  RealEnv env;
  Heard heard;
  Pipe pipe;
  auto loop = env.make_loop({"test"});
  {
    RealProcesses processes;
    auto process = processes.start(child("ignore", pipe.path()), *loop, heard.hears());
    pipe.wait_for_child();
    process.reset();
    pipe.wait_for_end();
    settle(*loop);
    // A process that is dropped at once may not even begin.
    processes.start(child("ignore"), *loop, heard.hears()).reset();
    loop.reset();
  }
  CHECK(heard.times == 0);
}

TEST_CASE("a process that ends is started again, until it is asked to end", "[apps]") {
  RealEnv env;
  RealProcesses processes;
  Pipe pipe;
  std::atomic<int> starts = 0;
  std::vector<ProcessEnd> ends;  // Used by the loop, until the process has ended.
  KeepOptions options;
  options.arguments = [] { return child("").arguments; };
  options.environment = [&] {
    const bool is_last = ++starts == 3;
    return child(is_last ? "obey" : "say", is_last ? pipe.path() : "").environment;
  };
  options.backoff = {1ms, 1ms};
  options.ended = [&](const ProcessEnd& end) {
    ends.push_back(end);
    return true;
  };
  std::vector<std::unique_ptr<KeptProcess>> kept;
  kept.push_back(std::make_unique<KeptProcess>(env, processes, std::move(options)));
  pipe.wait_for_child();
  end_and_wait(kept);
  CHECK(starts == 3);
  REQUIRE(ends.size() == 3);
  CHECK(ends[0].code == 7);
  CHECK(ends[1].code == 7);
  CHECK(ends[2].code == obeyed);
  // It has ended for good.
  end_and_wait(kept);
  CHECK(starts == 3);
}

TEST_CASE("a kept process that does not obey is killed, and one that may not restart stays away",
          "[apps]") {
  RealEnv env;
  RealProcesses processes;
  Pipe pipe;
  KeepOptions stubborn, short_lived;
  stubborn.arguments = short_lived.arguments = [] { return child("").arguments; };
  stubborn.environment = [&] { return child("ignore", pipe.path()).environment; };
  stubborn.end_patience = 1ms;
  Heard end_of_stubborn, end_of_short_lived;
  stubborn.ended = [&](const ProcessEnd& end) {
    end_of_stubborn.hears()(end);
    return true;
  };
  short_lived.environment = [] { return child("say").environment; };
  short_lived.ended = [&](const ProcessEnd& end) {
    end_of_short_lived.hears()(end);
    return false;
  };
  std::vector<std::unique_ptr<KeptProcess>> kept;
  kept.push_back(std::make_unique<KeptProcess>(env, processes, std::move(stubborn)));
  kept.push_back(std::make_unique<KeptProcess>(env, processes, std::move(short_lived)));
  pipe.wait_for_child();
  CHECK(end_of_short_lived.get().code == 7);
  end_and_wait(kept);
  CHECK(end_of_stubborn.get().signal == SIGKILL);
  CHECK(end_of_stubborn.times == 1);
  CHECK(end_of_short_lived.times == 1);
}

TEST_CASE("a kept process that is dropped is killed", "[apps]") {
  RealEnv env;
  RealProcesses processes;
  Pipe pipe;
  KeepOptions options;
  options.arguments = [] { return child("").arguments; };
  options.environment = [&] { return child("obey", pipe.path()).environment; };
  std::atomic<int> ends = 0;
  options.ended = [&](const ProcessEnd&) { return ++ends > 0; };
  auto kept = std::make_unique<KeptProcess>(env, processes, std::move(options));
  pipe.wait_for_child();
  kept.reset();
  pipe.wait_for_end();
  CHECK(ends == 0);
}

}  // namespace
}  // namespace troupe::apps
