// Many simultaneous attackers during a run.

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"
#include "cluster/attacks.h"
#include "cluster/cluster.h"
#include "core/descriptor_limit.h"
#include "transport/sockets.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t members = 64;

void keep_thread_on(pid_t thread, unsigned core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  sched_setaffinity(thread, sizeof cores, &cores);
}

/// Binds all threads of the process to a core. Threads that they start inherit that.
void keep_on(pid_t process, unsigned core) {
  for (const auto& thread :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task"))
    keep_thread_on(static_cast<pid_t>(std::stol(thread.path().filename())), core);
}

/// Attacks from many threads, and as many silent connections, until it is destroyed.
class Mob {
 public:
  Mob(const Target& target, std::size_t count, std::optional<unsigned> core = {})
      : done_(all_attacks().size()) {
    for (std::size_t i = 0; i < count; ++i)
      members_.emplace_back([this, target, i, core](const std::stop_token& stop) {
        // Attackers use only idle time, as if they were on other machines. At the lowest normal
        // priority, 64 attackers together would get as much of a core as the head.
        const sched_param last{};
        sched_setscheduler(0, SCHED_IDLE, &last);
        if (core) keep_thread_on(gettid(), *core);
        const RawConnection silent(target.control);
        std::mt19937_64 random(i);
        for (std::size_t next = i; !stop.stop_requested(); ++next) {
          const auto which = next % done_.size();
          all_attacks()[which](target, random);
          ++done_[which];
        }
      });
  }
  ~Mob() {
    for (auto& member : members_) member.request_stop();
  }

  /// Returns how often each attack was made at least.
  std::size_t rounds() const {
    std::size_t fewest = done_[0];
    for (const auto& times : done_) fewest = std::min<std::size_t>(fewest, times);
    return fewest;
  }

 private:
  std::vector<std::atomic<std::size_t>> done_;
  std::vector<std::jthread> members_;
};

std::string published_at(const std::string& said) {
  const std::string before = "events at ";
  const auto from = said.find(before) + before.size();
  return said.substr(from, said.find(';', from) - from);
}

/// Counts the open files of a process.
std::size_t files_of(pid_t process) {
  const std::filesystem::directory_iterator files("/proc/" + std::to_string(process) + "/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

/// Attacks a run of `steps` steps. Returns how long that took.
Clock::duration attack_a_run(int steps) {
  constexpr long most_growth = long{2 * members} << 20;
  const Workplace here;
  const auto before = leavings(here);
  here.write("gpt.toml", gpt);
  const auto one = digest_of_one(here, {"train.steps=" + std::to_string(steps)});

  Cluster cluster(here, {"alpha", "beta"});
  const auto head = head_of(here);
  Process submit(here, with({"submit", "gpt.toml", "--wait", "--output", "plain"},
                            {"name=many", "train.steps=" + std::to_string(steps),
                             "pipeline.stages=2", "log.every=1"}));
  REQUIRE(submit.says("step 10 "));
  const long memory = resident_bytes(cluster.head.id());
  const auto begin = Clock::now();
  {
    const Mob mob({head, published_at(cluster.head.said()), "many"}, members);
    const auto code = submit.wait(std::chrono::minutes(10));
    INFO(submit.said());
    REQUIRE(code == 0);
    CHECK(mob.rounds() > 0);
    if (!is_sanitized) CHECK(resident_bytes(cluster.head.id()) - memory < most_growth);
  }
  const auto time = Clock::now() - begin;
  CHECK(digest(here, "many") == one);
  // No node was lost, so no step was repeated.
  for (const auto& [step, times] : times_done(here, "many")) CHECK(times == 1);
  // Honest clients are still admitted.
  const Ended nodes = tests::troupe(here, {"nodes", "--head", head});
  CHECK(nodes.out.find("alpha") != std::string::npos);
  CHECK(nodes.out.find("beta") != std::string::npos);
  cluster.end();
  CHECK(leavings(here) == before);
  return time;
}

/// Returns the mean time of a run's steps while nothing else happens. The head has a core of its
/// own, which it shares with the attackers, if any. The nodes have another core, as if they were on
/// another machine.
double seconds_of_a_step(std::size_t attackers) {
  constexpr unsigned head_core = 0, node_core = 1;
  const Workplace here;
  here.write("gpt.toml", gpt);
  Cluster cluster(here, {"alpha", "beta"});
  keep_on(cluster.head.id(), head_core);
  for (std::size_t node = 0; node < 2; ++node) keep_on(cluster.node_process(node), node_core);
  Process submit(here, with({"submit", "gpt.toml", "--wait", "--output", "plain"},
                            {"name=many", "train.steps=2000", "pipeline.stages=2", "log.every=100",
                             "train.eval_every=1000000", "checkpoint.every=1000000 steps"}));
  REQUIRE(submit.says("step 100 "));
  const Target target{head_of(here), published_at(cluster.head.said()), "many"};
  Clock::duration time;
  {
    const Mob mob(target, attackers, head_core);
    REQUIRE(submit.says("step 300 "));
    const auto begin = Clock::now();
    REQUIRE(submit.says("step 1900 ", std::chrono::minutes(5)));
    time = Clock::now() - begin;
  }
  CHECK(submit.wait(std::chrono::minutes(10)) == 0);
  cluster.end();
  return std::chrono::duration<double>(time).count() / 1600;
}

}  // namespace

TEST_CASE("many attackers do not disturb a run", "[cluster]") { attack_a_run(150); }

// Run by hand on a quiet machine, since it measures.
TEST_CASE("attacks on a head do not slow steps down", "[cluster][.hostile]") {
  std::vector<double> calm, attacked;
  for (int round = 0; round < 3; ++round) {
    calm.push_back(seconds_of_a_step(0));
    attacked.push_back(seconds_of_a_step(members));
  }
  std::ranges::sort(calm);
  std::ranges::sort(attacked);
  const double ratio = attacked[1] / calm[1];
  WARN("a step takes " << calm[1] * 1e3 << " ms, and " << attacked[1] * 1e3
                       << " ms under attack: " << ratio);
  CHECK(ratio < 1.02);
}

// Run by hand, since it takes minutes.
TEST_CASE("many attackers do not disturb a run for a minute", "[cluster][.hostile]") {
  CHECK(attack_a_run(6000) >= std::chrono::minutes(1));
}

TEST_CASE("silent connections never use up the descriptors that a head needs", "[cluster]") {
  constexpr std::size_t limit = 1024, strangers = 1200;
  raise_descriptor_limit();
  const Workplace here;
  here.write("gpt.toml", gpt);
  Process head(here, head_words({"--http", "127.0.0.1:0"}), limit);
  REQUIRE(head.says("troupe submit"));
  Process node(here, {"node", "--name", "alpha", "--cores", "1"});
  REQUIRE(node.says("joined"));
  Process submit(here, with({"submit", "gpt.toml", "--wait", "--output", "plain"},
                            {"name=crowded", "train.steps=1000000", "log.every=1",
                             "checkpoint.every=20 steps"}));
  REQUIRE(submit.says("step 10 "));
  const auto target = head_of(here);
  std::vector<std::unique_ptr<RawConnection>> silent;
  for (std::size_t i = 0; i < strangers; ++i)
    silent.push_back(std::make_unique<RawConnection>(target));
  // All were accepted and most were closed, so a new client is served.
  const Ended runs = tests::troupe(here, {"runs", "--head", target});
  INFO(runs.err << head.said());
  CHECK(runs.code == 0);
  CHECK(runs.out.find("crowded") != std::string::npos);
  CHECK(files_of(head.id()) < limit / 2);
  CHECK(head.says("wait to be admitted"));
  // Training and saving continue.
  submit.see_all();
  CHECK(submit.says_once_more("saved"));
  CHECK(head.said().find("is lost") == std::string::npos);
  silent.clear();
  for (Process* process : {&submit, &node, &head}) process->send(SIGTERM);
  CHECK(head.wait() == 0);
}
