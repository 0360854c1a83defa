#include "actors/lead/run_driver.h"

#include <atomic>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>

#include "catch.h"
#include "core/threads/real_env.h"

using namespace troupe;
using namespace troupe::actors;
using namespace std::chrono_literals;

namespace {

/// Hooks that record what they are told while the disk works, and remember orders.
class Head {
 public:
  Head()
      : driver_(env_, *loop_,
                {[](const decide::State&) { return decide::Limits{.fewest = 1, .most = 1}; },
                 [this](const std::vector<decide::Record>& records) { return write(records); },
                 [this](const decide::Answer& answer) { hear(answer); }}) {}
  ~Head() { loop_->end(); }
  Head(const Head&) = delete;
  Head& operator=(const Head&) = delete;

  RunDriver& operator*() { return driver_; }
  RunDriver* operator->() { return &driver_; }

  void spoil(bool is_bad) {
    const std::lock_guard lock(mutex_);
    is_bad_ = is_bad;
  }
  /// Waits for the first order of this kind that was not waited for yet.
  template <class Order>
  Order wait_for() {
    std::unique_lock lock(mutex_);
    std::optional<Order> found;
    const bool came = changed_.wait_for(lock, 30s, [&] {
      for (; !orders_.empty() && !found; orders_.erase(orders_.begin()))
        if (const auto* order = std::get_if<Order>(&orders_.front())) found = *order;
      return found.has_value();
    });
    REQUIRE(came);
    return *found;
  }
  std::vector<decide::Record::Kind> written() {
    const std::lock_guard lock(mutex_);
    return written_;
  }
  /// Sends the events in order up to the plan.
  decide::MakePlan begin() {
    driver_.take(decide::JournalRead{});
    driver_.take(decide::NodeCame{1, "alpha"});
    return wait_for<decide::MakePlan>();
  }

 private:
  Status write(const std::vector<decide::Record>& records) {
    const std::lock_guard lock(mutex_);
    if (is_bad_) return Error{"no space"};
    for (const auto& record : records) written_.push_back(record.kind);
    return Done{};
  }
  void hear(const decide::Answer& answer) {
    {
      const std::lock_guard lock(mutex_);
      orders_.insert(orders_.end(), answer.orders.begin(), answer.orders.end());
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_bad_ = false;
  std::vector<decide::Order> orders_;
  std::vector<decide::Record::Kind> written_;
  RealEnv env_;
  const std::unique_ptr<Loop> loop_ = env_.make_loop({"deciding"});
  RunDriver driver_;
};

}  // namespace

TEST_CASE("a decision is carried out after it is recorded", "[actors]") {
  using Kind = decide::Record::Kind;
  Head head;
  const auto plan = head.begin();
  CHECK(head.written() == std::vector{Kind::term});
  head.spoil(true);
  head->take(decide::PlanMade{plan.number, decide::PlanChoice{plan.nodes, "alone"}});
  // The decision waits for the one before, even if the disk works then.
  head->take(decide::NodeCame{2, "beta"});
  CHECK(head.wait_for<decide::Warn>().text.find("no space") != std::string::npos);
  CHECK(head.written() == std::vector{Kind::term});
  CHECK(head->state().phase == decide::Phase::plan);
  CHECK(head->state().nodes.size() == 1);
  head.spoil(false);
  CHECK(head.wait_for<decide::Prepare>().plan.members == std::vector<decide::Life>{1});
  CHECK(head.written() == std::vector{Kind::term, Kind::planned});
}

TEST_CASE("steps, saves and a person's orders are answered while nothing can be recorded",
          "[actors]") {
  Head head;
  const auto plan = head.begin();
  head.spoil(true);
  head->take(decide::PlanMade{plan.number, decide::PlanChoice{plan.nodes, "alone"}});
  head->take(decide::ChangeAsked{});
  CHECK(head.wait_for<decide::HoldRounds>().is_held);
  head->take(decide::StopAsked{.at_once = true});
  CHECK(head.wait_for<decide::End>().how == decide::End::How::stopped);
}

TEST_CASE("events that come again and again do not pile up while nothing can be recorded",
          "[actors]") {
  Head head;
  const auto plan = head.begin();
  head.spoil(true);
  head->take(decide::PlanMade{plan.number, decide::PlanChoice{plan.nodes, "alone"}});
  // A head tells every 100 ms of nodes that its machine does not know, and nodes restart.
  for (decide::Life life = 2; life < 1002; ++life) {
    head->take(decide::NodeCame{life, "beta"});
    head->take(decide::NodeCame{life, "beta"});
    head->take(decide::NodeHeard{1, life % 2 == 0});
    head->take(decide::NodeLost{life, "gone"});
  }
  std::promise<std::size_t> waiting;
  head->post([&] { waiting.set_value(head->waiting()); });
  // The plan, and what is new of both nodes.
  CHECK(waiting.get_future().get() == 4);
  head.spoil(false);
  CHECK(head.wait_for<decide::Prepare>().plan.members == std::vector<decide::Life>{1});
}

TEST_CASE("a run's driver runs delayed work later, and all other work in order", "[actors]") {
  Head head;
  head->take(decide::JournalRead{});
  CHECK(head.wait_for<decide::SetTimer>().after == decide::Limits().start_patience);
  std::vector<int> order;
  std::mutex mutex;
  std::condition_variable changed;
  const auto note = [&](int which) {
    {
      const std::lock_guard lock(mutex);
      order.push_back(which);
    }
    changed.notify_all();
  };
  head->after(20ms, [&] { note(3); });
  head->post([&] { note(1); });
  head->post([&] { note(2); });
  std::unique_lock lock(mutex);
  REQUIRE(changed.wait_for(lock, 30s, [&] { return order.size() == 3; }));
  CHECK(order == std::vector{1, 2, 3});
}

TEST_CASE("a paused driver answers nothing", "[actors]") {
  using Kind = decide::Record::Kind;
  Head head;
  head.begin();
  decide::Record last;
  last.kind = Kind::aborted;
  head->rest({last});
  head->rest({last});
  head->take(decide::NodeLost{1, "gone"});
  std::mutex mutex;
  std::condition_variable changed;
  bool is_through = false;
  head->post([&] {
    const std::lock_guard lock(mutex);
    is_through = true;
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  REQUIRE(changed.wait_for(lock, 30s, [&] { return is_through; }));
  CHECK(head.written() == std::vector{Kind::term, Kind::aborted});
  CHECK(head->state().nodes.size() == 1);
}

TEST_CASE("an ended driver calls no hooks", "[actors]") {
  std::atomic<int> asked = 0;
  std::promise<void> begins, goes_on;
  RealEnv env;
  const auto loop = env.make_loop({"deciding"});
  RunDriver driver(env, *loop,
                   {[&](const decide::State&) {
                      if (++asked == 1) {
                        begins.set_value();
                        goes_on.get_future().wait();
                      }
                      return decide::Limits{.fewest = 1, .most = 1};
                    },
                    [&](const std::vector<decide::Record>&) -> Status {
                      ++asked;
                      return Done{};
                    },
                    [&](const decide::Answer&) { ++asked; }});
  driver.take(decide::JournalRead{});
  driver.take(decide::NodeCame{1, "alpha"});
  begins.get_future().wait();
  // The driver is handling the first event.
  auto end = std::async(std::launch::async, [&] {
    loop->end();
    return asked.load();
  });
  goes_on.set_value();
  REQUIRE(end.wait_for(30s) == std::future_status::ready);
  const int in_the_end = end.get();
  CHECK(in_the_end > 1);  // It has carried out its decision.
  driver.take(decide::NodeLost{1, "gone"});
  driver.post([&] { ++asked; });
  CHECK(asked == in_the_end);
}
