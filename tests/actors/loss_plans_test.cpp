#include "actors/nodes/loss_plans.h"

#include <algorithm>
#include <future>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"
#include "core/threads/real_env.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

Sharing sharing_with(std::vector<int> cores, std::vector<double> work = {3, 1, 2, 1, 4, 1}) {
  std::ranges::sort(cores, std::greater<>());
  return {std::move(work), std::move(cores), 100};
}

Sharing without(Sharing sharing, int cores) {
  sharing.cores.erase(std::ranges::find(sharing.cores, cores));
  return sharing;
}

bool same(const Shares& a, const Shares& b) {
  return a.cores == b.cores && a.cuts == b.cuts && a.busiest == b.busiest;
}

/// Loss plans on a loop of their own.
class LoopOfPlans {
 public:
  LoopOfPlans() = default;
  ~LoopOfPlans() { loop_->end(); }
  LoopOfPlans(const LoopOfPlans&) = delete;
  LoopOfPlans& operator=(const LoopOfPlans&) = delete;

  /// Returns once all searches are done.
  void look_ahead(const Sharing& now) {
    on_loop([&] { plans_.look_ahead(now); });
    const auto all = neighbours_of(now);
    while (!std::ranges::all_of(all, [&](const Sharing& one) { return foresaw(one); }))
      std::this_thread::yield();
  }
  bool foresaw(const Sharing& wanted) {
    bool found = false;
    on_loop([&] { found = plans_.foresaw(wanted); });
    return found;
  }
  Shares shares(const Sharing& wanted) {
    Shares shares;
    on_loop([&] { shares = plans_.shares(wanted); });
    return shares;
  }

 private:
  /// Runs a task on the loop and waits for its end.
  void on_loop(const Loop::Task& task) {
    std::promise<void> done;
    loop_->post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }

  RealEnv env_;
  const std::unique_ptr<Loop> loop_ = env_.make_loop({"test"});
  LossPlans plans_{*loop_};
};

}  // namespace

TEST_CASE("loss plans cover the node kinds left after one or two losses", "[actors]") {
  CHECK(neighbours_of(sharing_with({2, 2, 2, 2})).size() == 3);
  // With C kinds: 1 without a loss, C with one loss, C with two losses of one kind, and C (C - 1) /
  // 2 with two kinds.
  CHECK(neighbours_of(sharing_with({4, 4, 2, 2, 1, 1})).size() == 1 + 3 + 3 + 3);
  // A kind with a single node cannot lose two.
  CHECK(neighbours_of(sharing_with({4, 2, 2})).size() == 1 + 2 + 2);
  // At least one node is left in each.
  CHECK(neighbours_of(sharing_with({1})).size() == 1);
  CHECK(neighbours_of(sharing_with({2, 1})).size() == 3);
}

TEST_CASE("100 kinds of nodes get plans for every single loss and some double losses", "[actors]") {
  std::vector<int> cores(100);
  std::iota(cores.begin(), cores.end(), 1);
  const auto all = neighbours_of(sharing_with(cores, std::vector<double>(100, 1)));
  CHECK(all.size() == most_foreseen);
  CHECK(std::ranges::count(all, 99u, [](const auto& one) { return one.cores.size(); }) == 100);
  CHECK(all.back().cores.size() == 98);
}

TEST_CASE("nodes that get no work change no plan, unless they replace a lost node", "[actors]") {
  auto sharing = sharing_with(std::vector<int>(4096, 1));
  sharing.cores.front() = 4;
  sharing.most = 3;
  // Now 4 1 1; after the loss of the node with four cores 1 1 1, however many more are lost.
  const auto all = neighbours_of(sharing);
  REQUIRE(all.size() == 2);
  CHECK(all[0].cores == std::vector{4, 1, 1});
  CHECK(all[1].cores == std::vector{1, 1, 1});
  // The last spare node is needed once two are lost.
  CHECK(neighbours_of(sharing_with({3, 2, 1}, {1, 1})).size() == 1 + 2 + 3);
  CHECK(same(share_out(sharing, Search::prompt), share_out(all[0], Search::prompt)));
  LoopOfPlans loss_plans;
  loss_plans.look_ahead(sharing);
  CHECK(loss_plans.foresaw(without(sharing, 1)));
  CHECK(loss_plans.foresaw(without(without(sharing, 1), 4)));
}

TEST_CASE("a plan made ahead for one or two losses equals the plan made after them", "[actors]") {
  const auto now = sharing_with({4, 4, 3, 2, 1, 1});
  LoopOfPlans loss_plans;
  loss_plans.look_ahead(now);
  CHECK(loss_plans.foresaw(now));
  for (const int first : now.cores) {
    const auto one = without(now, first);
    CHECK(loss_plans.foresaw(one));
    for (const int second : one.cores) {
      const auto two = without(one, second);
      CHECK(loss_plans.foresaw(two));
      CHECK(same(loss_plans.shares(two), share_out(two, Search::thorough)));
    }
  }
  CHECK_FALSE(loss_plans.foresaw(sharing_with({4, 4, 4, 4})));
}

TEST_CASE("plans for former nodes are dropped, except for those that are still needed",
          "[actors]") {
  const auto before = sharing_with({4, 3, 2, 1});
  const auto after = without(before, 4);
  LoopOfPlans loss_plans;
  loss_plans.look_ahead(before);
  CHECK(loss_plans.foresaw(before));
  loss_plans.look_ahead(after);
  CHECK(loss_plans.foresaw(after));
  CHECK(loss_plans.foresaw(without(without(after, 3), 2)));
  CHECK_FALSE(loss_plans.foresaw(before));
}

TEST_CASE("an unforeseen loss gets the plan of a prompt search", "[actors]") {
  std::vector<int> cores;
  std::vector<double> work;
  for (int i = 0; i < 100; ++i) {
    cores.push_back(1 + i * 7 % 5);
    work.push_back(1 + i * 3 % 7);
  }
  const auto wanted = sharing_with(cores, work);
  LoopOfPlans loss_plans;
  const auto shares = loss_plans.shares(wanted);
  CHECK(shares.cuts.back() == 100);
  CHECK(same(shares, share_out(wanted, Search::prompt)));
}
