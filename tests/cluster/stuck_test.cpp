#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catch.h"
#include "cluster/process.h"

using namespace troupe;
using namespace troupe::tests;

// One thread of a real run stands still for ever, as one does that waits for a disk, a device or a
// terminal which never answers; all others go on.

namespace {

const std::string stuck_run = R"(
name = "stuck"
[model]
kind    = "gpt2"
vocab   = 32
context = 16
width   = 32
heads   = 2
layers  = 2
[data]
train = "made:markov?states=32"
[batch]
global = 8
micro  = 2
[optimizer]
kind = "adamw"
lr   = 1e-3
[pipeline]
stages = 2
[checkpoint]
every = "20 steps"
[train]
steps = 150
[log]
every = 1
)";

const std::string impatient_run = R"(
extends = "run.toml"
[limits]
heartbeat_every    = "10ms"
silence_floor      = "20ms"
inventory_patience = "30ms"
reconnect_patience = "40ms"
stuck_floor        = "50ms"
decision_patience  = "60ms"
save_patience      = "500ms"
head_patience      = "2s"
)";

std::vector<std::string> words_to_train(const std::string& config) {
  return {"train", config, "--output", "plain"};
}

/// In the order in which they began, the main one first, without the one that watches all others.
std::vector<pid_t> threads_of(pid_t process) {
  std::vector<pid_t> threads;
  const auto folder = "/proc/" + std::to_string(process) + "/task";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::string name;
    std::ifstream(entry.path() / "comm") >> name;
    if (name != "watchdog") threads.push_back(std::stoi(entry.path().filename()));
  }
  std::ranges::sort(threads);
  return threads;
}

enum class Stopped { yes, gone, forbidden };

Stopped stop_thread(pid_t thread) {
  if (ptrace(PTRACE_SEIZE, thread, nullptr, PTRACE_O_EXITKILL) != 0)
    return errno == ESRCH ? Stopped::gone : Stopped::forbidden;
  if (ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0) return Stopped::gone;
  int status = 0;
  const bool is_stopped = waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status);
  return is_stopped ? Stopped::yes : Stopped::gone;
}

/// With the digests of all that was saved with it.
std::string last_manifest(const Workplace& here) {
  return here.read("runs/stuck/checkpoints/step-000000000150/manifest.json");
}

/// A run of which one thread stands still from some step on.
class StuckRun {
 public:
  explicit StuckRun(std::size_t which) {
    here_.write("run.toml", stuck_run);
    here_.write("impatient.toml", impatient_run);
    process_.emplace(here_, words_to_train("impatient.toml"));
    REQUIRE(process_->says("step 3 "));
    const auto all = threads_of(process_->id());
    threads_ = all.size();
    if (which >= all.size()) return;
    thread_ = all[which];
    stopped_ = stop_thread(thread_);
  }
  ~StuckRun() {
    if (stopped_ == Stopped::yes) (void)ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
  }
  StuckRun(const StuckRun&) = delete;
  StuckRun& operator=(const StuckRun&) = delete;

  const Workplace& here() const { return here_; }
  const std::string& said() const { return process_->said(); }
  std::size_t threads() const { return threads_; }
  Stopped stopped() const { return stopped_; }

  /// Its exit code; 128 + SIGKILL where it does not end by itself.
  std::optional<int> end() {
    process_->listen(std::chrono::seconds(60));
    process_->send(SIGKILL);
    // The thread ends with the others, which are not gone before that is seen.
    if (stopped_ == Stopped::yes && thread_ != process_->id()) waitpid(thread_, nullptr, __WALL);
    stopped_ = Stopped::gone;
    return process_->wait();
  }

 private:
  Workplace here_;
  std::optional<Process> process_;
  std::size_t threads_ = 0;
  pid_t thread_ = -1;
  Stopped stopped_ = Stopped::gone;
};

}  // namespace

TEST_CASE("whichever thread of a run is stuck for ever, the process ends and says how to go on",
          "[cluster]") {
  const Workplace whole;
  whole.write("run.toml", stuck_run);
  Process undisturbed(whole, words_to_train("run.toml"));
  REQUIRE(undisturbed.wait() == 0);
  const auto wanted = last_manifest(whole);
  REQUIRE(!wanted.empty());

  std::vector<std::unique_ptr<StuckRun>> runs;
  std::size_t threads = 1;
  for (std::size_t which = 0; which < threads; ++which) {
    runs.push_back(std::make_unique<StuckRun>(which));
    threads = std::max(threads, runs.back()->threads());
    if (runs.back()->stopped() == Stopped::forbidden) {
      WARN("this machine lets nobody trace a process: nothing was tested");
      return;
    }
  }
  CHECK(threads >= 8);
  int failed = 0;
  for (const auto& run : runs) {
    const auto code = run->end();
    INFO("thread " << &run - runs.data() << " of " << run->threads() << ": " << run->said());
    REQUIRE(code);
    if (*code != 0) {
      ++failed;
      CHECK(*code == 1);
      CHECK(run->said().find("stuck: failed: ") != std::string::npos);
      CHECK(run->said().find(": troupe train impatient.toml --resume\n") != std::string::npos);
      Process resumed(run->here(), {"train", "run.toml", "--resume"});
      const auto end = resumed.wait();
      INFO(resumed.said());
      REQUIRE(end == 0);
    }
    CHECK(last_manifest(run->here()) == wanted);
  }
  CHECK(failed >= 6);
}
