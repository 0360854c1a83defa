// Whatever process dies at whatever time, the weights equal those of an undisturbed run.

#include <signal.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "cluster/cluster.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

constexpr int nodes = 4;

/// A head and four nodes that train, and faults that kill them.
class Chaos {
 public:
  Chaos(const Workplace& here, const std::string& config, const std::vector<std::string>& settings,
        unsigned seed, std::chrono::duration<double> longest_freeze)
      : here_(here),
        random_(seed),
        longest_freeze_(longest_freeze),
        head_(here, head_words({"--supervised"})) {
    REQUIRE(head_.says("troupe submit"));
    for (int node = 0; node < nodes; ++node) daemons_.push_back(start_daemon(node));
    for (const auto& daemon : daemons_) REQUIRE(daemon->says("joined"));
    auto words = with({"submit", config, "--wait", "--output", "plain"}, settings);
    for (const std::string more :
         {"name=chaos", "log.every=1", "pipeline.stages=2", "pipeline.replicas=2"})
      words.insert(words.end(), {"--set", more});
    submit_.emplace(here, words);
  }

  /// Waits for `steps` more steps. Repeated steps count too.
  void let_steps_pass(int steps) {
    submit_->see_all();
    for (int step = 0; step < steps; ++step) {
      INFO(told());
      REQUIRE(submit_->says_once_more("\nstep ", std::chrono::seconds(120)));
    }
  }
  int random(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

  /// Injects a fault. Returns a description of it.
  std::string strike() {
    const int kind = random(10);
    const auto which = static_cast<std::size_t>(random(nodes));
    auto& daemon = daemons_[which];
    const auto name = " of node " + std::to_string(which);
    const auto children = children_of(daemon->id());
    if (kind < 5 && !children.empty()) {
      kill(children.front(), SIGKILL);
      return "the process" + name;
    }
    if (kind < 7) {
      daemon->send(SIGKILL);
      daemon->wait();
      daemon = start_daemon(static_cast<int>(which));
      return "the daemon" + name;
    }
    const auto heads = children_of(head_.id());
    if (kind < 9 && !heads.empty()) {
      kill(heads.front(), SIGKILL);
      return "the head";
    }
    if (children.empty()) return "nobody: the process" + name + " is not there";
    kill(children.front(), SIGSTOP);
    const double seconds = 0.2 * std::pow(longest_freeze_.count() / 0.2, random(1000) / 1000.0);
    frozen_.emplace_back(children.front(),
                         Clock::now() + std::chrono::milliseconds(std::lround(1000 * seconds)));
    return "for a while the process" + name;
  }

  /// Resumes frozen processes whose time is over.
  void thaw() {
    std::erase_if(frozen_, [](const auto& frozen) {
      if (frozen.second > Clock::now()) return false;
      kill(frozen.first, SIGCONT);
      return true;
    });
  }

  void let_time_pass(double seconds) {
    submit_->listen(std::chrono::milliseconds(std::lround(1000 * seconds)));
    // Empties the pipes, since a process that writes to a full pipe blocks.
    head_.see_all();
    for (const auto& daemon : daemons_) daemon->see_all();
  }

  bool is_under_way() { return !submit_->wait(std::chrono::seconds(0)); }
  /// Sets the run's end. Returns its number of steps. The run may be ahead of its reports, and the
  /// head may be dead at the moment, so this retries.
  std::int64_t end_soon() {
    for (int tries = 0; tries < 100; ++tries) {
      let_time_pass(0.5);
      thaw();
      const auto steps = steps_done() + 20;
      const Ended set = troupe::tests::troupe(
          here_,
          {"set", "chaos", "train.steps=" + std::to_string(steps), "--head", head_of(here_)});
      if (set.code == 0) return steps;
    }
    FAIL("its steps could not be set:\n" << told());
    return 0;
  }
  /// Waits for the end of the run and of all processes.
  void end() {
    const auto code = submit_->wait(std::chrono::seconds(300));
    INFO(told());
    CHECK(code == 0);
    for (const auto& [process, time] : frozen_) kill(process, SIGCONT);
    for (const auto& daemon : daemons_) daemon->send(SIGTERM);
    for (const auto& daemon : daemons_) CHECK(daemon->wait() == 0);
    head_.send(SIGTERM);
    CHECK(head_.wait() == 0);
  }

  std::string told() { return "head:\n" + head_.said() + "\nrun:\n" + submit_->said(); }

 private:
  std::unique_ptr<Process> start_daemon(int node) const {
    return std::make_unique<Process>(
        here_, std::vector<std::string>{"node", "--name", "n" + std::to_string(node), "--cores",
                                        "1", "--head", head_of(here_)});
  }

  /// Returns the last reported step.
  std::int64_t steps_done() const {
    const auto& said = submit_->said();
    const auto last = said.rfind("\nstep ");
    return last == std::string::npos ? 0 : std::stoll(said.substr(last + 6));
  }

  using Clock = std::chrono::steady_clock;

  const Workplace& here_;
  std::mt19937 random_;
  std::chrono::duration<double> longest_freeze_;
  std::vector<std::pair<pid_t, Clock::time_point>> frozen_;
  Process head_;
  std::vector<std::unique_ptr<Process>> daemons_;
  std::optional<Process> submit_;
};

}  // namespace

TEST_CASE("thirty deaths at any moment change no bit and leave nothing behind", "[cluster]") {
  const Workplace here;
  const auto before = leavings(here);
  here.write("gpt.toml", gpt);
  const std::vector<std::string> settings{"train.steps=250", "checkpoint.every=5 steps",
                                          "train.eval_every=100"};
  const auto one = digest_of_one(here, settings);
  std::string victims;
  {
    // A frozen process resumes after the others have continued without it.
    Chaos chaos(here, "gpt.toml", settings, 1, std::chrono::milliseconds(200));
    for (int death = 0; death < 30; ++death) {
      INFO(victims);
      chaos.let_steps_pass(1 + chaos.random(3));
      chaos.thaw();
      victims += chaos.strike() + "; ";
      REQUIRE(chaos.is_under_way());
    }
    INFO(victims);
    chaos.end();
  }
  INFO(victims);
  CHECK(digest(here, "chaos") == one);
  CHECK(leavings(here) == before);
  CHECK(processes_of_program(here) == 0);
}

// These tests take half an hour together: `./dev test --chaos`.

namespace {

/// Kills random processes every two seconds on average, and freezes some for up to a minute. Then
/// it sets the run's end and compares the bits with a run of as many steps in one process.
void disturb(const std::string& config, const std::vector<std::string>& settings, int deaths) {
  const Workplace here;
  const auto before = leavings(here);
  here.write("gpt.toml", "extends = \"" TROUPE_CONFIG "/" + config + "\"\n");
  const auto until = [&](std::int64_t step) {
    auto all = settings;
    all.insert(all.end(), {"train.eval_every=20", "checkpoint.every=5 steps",
                           "precision.compute=fp32", "train.steps=" + std::to_string(step)});
    return all;
  };
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::int64_t steps = 0;
  {
    Chaos chaos(here, "gpt.toml", until(1'000'000), seed, std::chrono::seconds(60));
    std::mt19937 random(seed);
    std::exponential_distribution<double> gap(1 / 2.0);
    for (int death = 0; death < deaths; ++death) {
      chaos.let_time_pass(gap(random));
      chaos.thaw();
      chaos.strike();
      INFO(chaos.told());
      REQUIRE(chaos.is_under_way());
    }
    steps = chaos.end_soon();
    chaos.end();
  }
  WARN(config << ": " << deaths << " deaths and freezes, " << steps << " steps, seed " << seed);
  const auto one = digest_of_one(here, until(steps));
  CHECK(digest(here, "chaos") == one);
  const Ended audit = troupe::tests::troupe(here, {"audit", "chaos"});
  INFO(audit.out << audit.err);
  CHECK(audit.code == 0);
  CHECK(leavings(here) == before);
  CHECK(processes_of_program(here) == 0);
}

}  // namespace

TEST_CASE("five hundred deaths of a GPT's nodes, daemons and heads change no bit", "[.chaos]") {
  disturb("gpt-small.toml", {"batch.global=4", "batch.micro=1"}, 500);
}

TEST_CASE("a hundred deaths change no bit of a residual network", "[.chaos]") {
  disturb("resnet-tiny.toml", {}, 100);
}

TEST_CASE("a hundred deaths change no bit of an asynchronous run", "[.chaos]") {
  // An asynchronous run keeps states only at the end of a round, so a round must fit into two
  // seconds.
  disturb("gpt-tiny.toml",
          {"pipeline.stages=2", "pipeline.replicas=2", "pipeline.schedule=pipedream",
           "model.tied=false", "staleness.preset=ws", "staleness.flush_every=32"},
          100);
}
