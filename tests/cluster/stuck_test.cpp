#include <signal.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catch.h"
#include "cluster/cluster.h"
#include "cluster/stopped_thread.h"

using namespace troupe;
using namespace troupe::tests;

// One thread of a real run is stopped for ever.

namespace {

constexpr auto npos = std::string::npos;

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
silence_floor      = "20ms"
reconnect_patience = "40ms"
stuck_floor        = "50ms"
save_patience      = "500ms"
head_patience      = "2s"
)";

const std::string no_right = "this machine lets nobody trace a process: nothing was tested";

std::vector<std::string> words_to_train(const std::string& config) {
  return {"train", config, "--output", "plain"};
}

/// Returns the manifest with the digests of all saved files.
std::string last_manifest(const Workplace& here) {
  return here.read("runs/stuck/checkpoints/step-000000000150/manifest.json");
}

/// A run of which one thread is stopped at some step. The watchdog's thread is never stopped.
class StuckRun {
 public:
  explicit StuckRun(std::size_t which) {
    here_.write("run.toml", stuck_run);
    here_.write("impatient.toml", impatient_run);
    process_.emplace(here_, words_to_train("impatient.toml"));
    REQUIRE(process_->says("step 3 "));
    auto all = threads_of(process_->id());
    std::erase_if(all, [](const Thread& thread) { return thread.name == "watchdog"; });
    threads_ = all.size();
    if (which >= all.size()) return;
    is_main_ = all[which].id == process_->id();
    thread_.emplace(all[which].id);
  }

  const Workplace& here() const { return here_; }
  const std::string& said() const { return process_->said(); }
  std::size_t threads() const { return threads_; }
  bool may_be_stopped() const { return !thread_ || thread_->has() != StoppedThread::Has::no_right; }

  /// Returns the exit code; 128 + SIGKILL if the process does not end by itself.
  std::optional<int> end() {
    process_->listen(2 * usual_patience);
    process_->send(SIGKILL);
    if (thread_ && !is_main_) thread_->see_end();
    return process_->wait();
  }

 private:
  Workplace here_;
  std::optional<Process> process_;
  std::size_t threads_ = 0;
  bool is_main_ = false;
  std::optional<StoppedThread> thread_;
};

/// A run under a head of which one thread is stopped at some step. Only threads that started after
/// the watchdog's thread are stopped.
class StuckHead {
 public:
  explicit StuckHead(std::size_t which) {
    here_.write("gpt.toml", gpt);
    head_.emplace(here_, head_words({"--supervised"}));
    REQUIRE(head_->says("troupe submit"));
    node_.emplace(here_, std::vector<std::string>{"node", "--name", "alpha", "--cores", "1"});
    REQUIRE(node_->says("joined"));
    submit_.emplace(
        here_, with({"submit", "gpt.toml", "--wait", "--output", "plain"},
                    {"name=stuck", "train.steps=150", "log.every=1", "limits.stuck_floor=1200ms",
                     "limits.head_patience=3s", "limits.save_patience=3s"}));
    REQUIRE(submit_->says("step 3 "));
    const auto heads = children_of(head_->id());
    REQUIRE(heads.size() == 1);
    const auto all = threads_of(heads.front());
    const auto own = std::ranges::find(all, "watchdog", &Thread::name) + 1;
    threads_ = static_cast<std::size_t>(all.end() - own);
    if (which < threads_) thread_.emplace(own[static_cast<std::ptrdiff_t>(which)].id);
  }

  const Workplace& here() const { return here_; }
  std::string said() const { return head_->said() + node_->said() + submit_->said(); }
  std::size_t threads() const { return threads_; }
  bool may_be_stopped() const { return !thread_ || thread_->has() != StoppedThread::Has::no_right; }

  /// Returns whether the head has ended itself.
  bool has_ended() const { return head_->said().find("no progress for 3s") != npos; }
  /// Handles the head's end. Returns the exit code of submit once it has ended.
  std::optional<int> look() {
    head_->listen(std::chrono::milliseconds(10));
    if (thread_ && has_ended()) thread_->see_end();
    return submit_->wait(std::chrono::seconds(0));
  }

 private:
  Workplace here_;
  std::optional<Process> head_;
  std::optional<Process> node_;
  std::optional<Process> submit_;
  std::size_t threads_ = 0;
  std::optional<StoppedThread> thread_;
};

}  // namespace

TEST_CASE("a run with any one thread stuck ends its process and says how to resume", "[cluster]") {
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
    if (!runs.back()->may_be_stopped()) {
      WARN(no_right);
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
      CHECK(run->said().find("stuck: failed: ") != npos);
      CHECK(run->said().find(": troupe train impatient.toml --resume\n") != npos);
      Process resumed(run->here(), {"train", "run.toml", "--resume"});
      const auto end = resumed.wait();
      INFO(resumed.said());
      REQUIRE(end == 0);
    }
    CHECK(last_manifest(run->here()) == wanted);
  }
  CHECK(failed >= 6);
}

TEST_CASE("with any one thread of a head's run stuck, the run ends or the head restarts",
          "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  const auto wanted = digest_of_one(here, {"train.steps=150"});

  std::vector<std::unique_ptr<StuckHead>> heads;
  std::size_t threads = 1;
  for (std::size_t which = 0; which < threads; ++which) {
    heads.push_back(std::make_unique<StuckHead>(which));
    threads = std::max(threads, heads.back()->threads());
    if (!heads.back()->may_be_stopped()) {
      WARN(no_right);
      return;
    }
  }
  CHECK(threads >= 5);
  std::vector<std::optional<int>> codes(heads.size());
  const auto end = std::chrono::steady_clock::now() + 2 * usual_patience;
  while (std::ranges::count(codes, std::optional<int>()) > 0 &&
         std::chrono::steady_clock::now() < end)
    for (std::size_t i = 0; i < heads.size(); ++i)
      if (!codes[i]) codes[i] = heads[i]->look();
  int came_back = 0, failed = 0;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const auto& head = *heads[i];
    INFO("thread " << i << " of " << heads.size() << ": " << head.said());
    REQUIRE(codes[i]);
    if (head.has_ended()) {
      ++came_back;
      CHECK(head.said().find("was ended by signal 6 (Aborted); restarting it") != npos);
    }
    if (codes[i] == 0) {
      CHECK(digest(head.here(), "stuck") == wanted);
    } else {
      // The thread that writes to disk: another process would have the same disk, so the run fails.
      CHECK(++failed == 1);
      CHECK(codes[i] == 1);
      CHECK(head.said().find("it waits for a checkpoint to be written, for too long") != npos);
    }
  }
  CHECK(came_back >= 3);
}
