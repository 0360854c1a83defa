// Many who mean no good, all at once, while a run goes on.

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"
#include "cluster/attacks.h"
#include "cluster/cluster.h"
#include "transport/sockets.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

using Clock = std::chrono::steady_clock;

/// Attacks from many threads, and as many connections that say nothing at all, until it ends.
class Mob {
 public:
  Mob(const Target& target, std::size_t count) : done_(all_attacks().size()) {
    for (std::size_t i = 0; i < count; ++i)
      members_.emplace_back([this, target, i](const std::stop_token& stop) {
        // Those who are attacked have the cores first, as they would on machines of their own.
        setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
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

  /// How often each of the attacks was made so far, at least.
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

/// For so long.
Clock::duration attack_a_run(int steps) {
  constexpr std::size_t members = 64;
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
    CHECK(resident_bytes(cluster.head.id()) - memory < most_growth);
  }
  const auto time = Clock::now() - begin;
  CHECK(digest(here, "many") == one);
  // No node was lost, so nothing was done twice.
  for (const auto& [step, times] : times_done(here, "many")) CHECK(times == 1);
  // Those who behave are let in as before.
  const Ended nodes = tests::troupe(here, {"nodes", "--head", head});
  CHECK(nodes.out.find("alpha") != std::string::npos);
  CHECK(nodes.out.find("beta") != std::string::npos);
  cluster.end();
  CHECK(leavings(here) == before);
  return time;
}

}  // namespace

TEST_CASE("a run does not mind many who mean no good", "[cluster]") { attack_a_run(150); }

// By hand: it takes minutes.
TEST_CASE("a run does not mind them for a minute", "[cluster][.hostile]") {
  CHECK(attack_a_run(6000) >= std::chrono::minutes(1));
}
