#include "core/threads/worker.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <vector>

#include "catch.h"

using namespace troupe;
using namespace std::chrono_literals;

namespace {

/// A clock that a test moves. The worker looks at it again when a task is posted.
struct OwnClock {
  std::atomic<std::chrono::nanoseconds> time{1h};

  Worker::Now now() {
    return [this] { return Env::Time(time.load()); };
  }
};

/// Returns once the worker has run all tasks that are due.
void settle(Worker& worker) {
  std::promise<void> reached;
  REQUIRE(worker.post([&] { reached.set_value(); }) == Worker::Posted::yes);
  reached.get_future().wait();
}

/// Keeps a worker busy until it is destroyed.
class Busy {
 public:
  explicit Busy(Worker& worker) {
    std::promise<void> began;
    worker.post([&began, gate = gate_.get_future().share()] {
      began.set_value();
      gate.wait();
    });
    began.get_future().wait();
  }
  ~Busy() { gate_.set_value(); }

 private:
  std::promise<void> gate_;
};

}  // namespace

TEST_CASE("a task queue returns due tasks in order", "[core]") {
  const TaskQueue::Time start;
  TaskQueue queue;
  std::string ran;
  queue.add(start + 2s, [&] { ran += 'c'; });
  queue.add(start + 1s, [&] { ran += 'a'; });
  queue.add(start + 1s, [&] { ran += 'b'; });
  const auto run_until = [&](TaskQueue::Time now) {
    while (auto task = queue.take(now)) (*task)();
  };
  run_until(start);
  CHECK(ran.empty());
  CHECK(queue.next_due() == start + 1s);
  run_until(start + 1s);
  CHECK(ran == "ab");
  CHECK(queue.next_due() == start + 2s);
  run_until(start + 1h);
  CHECK(ran == "abc");
  CHECK_FALSE(queue.next_due());
}

TEST_CASE("a cancelled task does not run", "[core]") {
  const TaskQueue::Time start;
  TaskQueue queue;
  const auto first = queue.add(start, [] {});
  const auto second = queue.add(start, [] {});
  CHECK(queue.cancel(first));
  CHECK_FALSE(queue.cancel(first));
  CHECK(queue.size() == 1);
  CHECK(queue.take(start));
  CHECK_FALSE(queue.cancel(second));
}

TEST_CASE("a worker runs tasks in order on a thread with its name", "[core]") {
  Worker worker({"at work"});
  std::string ran;
  std::array<char, 16> name{};
  worker.post([&] {
    ran += 'a';
    worker.post([&] { ran += 'c'; });
    ran += 'b';
  });
  worker.post([&] { pthread_getname_np(pthread_self(), name.data(), name.size()); });
  settle(worker);
  settle(worker);
  CHECK(ran == "abc");
  CHECK(std::string(name.data()) == "at work");
}

TEST_CASE("a worker runs a timer when its clock reaches the due time", "[core]") {
  OwnClock clock;
  Worker worker({"test"}, clock.now());
  std::string ran;
  worker.after(10min, [&] { ran += 'b'; });
  worker.after(5min, [&] { ran += 'a'; });
  const auto timer = worker.after(7min, [&] { ran += 'x'; });
  REQUIRE(timer);
  worker.cancel(*timer);
  settle(worker);
  CHECK(ran.empty());
  clock.time = 1h + 5min;
  settle(worker);
  CHECK(ran == "a");
  clock.time = 2h;
  settle(worker);
  CHECK(ran == "ab");
}

TEST_CASE("a worker wakes up for a timer", "[core]") {
  Worker worker({"test"});
  std::promise<void> ran;
  worker.after(1ms, [&] { ran.set_value(); });
  ran.get_future().wait();
}

TEST_CASE("a timer with the longest delay does not overflow", "[core]") {
  Worker worker({"test"});
  bool ran = false;
  CHECK(worker.after(std::chrono::nanoseconds::max(), [&] { ran = true; }));
  settle(worker);
  worker.end();
  CHECK_FALSE(ran);
}

TEST_CASE("a worker refuses tasks beyond its limit of waiting tasks", "[core]") {
  Worker worker({.name = "test", .most_waiting = 2});
  {
    const Busy busy(worker);
    CHECK(worker.post([] {}) == Worker::Posted::yes);
    CHECK(worker.after(0s, [] {}));
    CHECK(worker.post([] {}) == Worker::Posted::full);
    CHECK_FALSE(worker.after(0s, [] {}));
  }
  while (worker.post([] {}) == Worker::Posted::full) std::this_thread::yield();
}

TEST_CASE("ending a worker finishes its running task and drops the others", "[core]") {
  auto dropped = std::make_shared<int>();
  const std::weak_ptr<int> lives = dropped;
  bool finished = false, ran = false;
  Worker worker({"test"});
  std::promise<void> began;
  worker.post([&] {
    began.set_value();
    // Until end() has been called.
    while (worker.post([] {}) != Worker::Posted::ended) std::this_thread::yield();
    finished = true;
  });
  began.get_future().wait();
  worker.after(24h, [&ran, held = std::move(dropped)] { ran = true; });
  worker.end();
  CHECK(finished);
  CHECK_FALSE(ran);
  CHECK(lives.expired());
  CHECK(worker.post([] {}) == Worker::Posted::ended);
  CHECK_FALSE(worker.after(0s, [] {}));
}

TEST_CASE("a worker's loop goes on while work runs aside", "[core]") {
  Worker worker({"test"});
  std::promise<void> reached, done;
  std::array<char, 16> name{};
  worker.aside(
      "slow",
      [&] {
        pthread_getname_np(pthread_self(), name.data(), name.size());
        reached.get_future().wait();
      },
      [&] { done.set_value(); });
  worker.post([&] { reached.set_value(); });
  done.get_future().wait();
  CHECK(std::string(name.data()) == "slow");
}

TEST_CASE("works of different names run at the same time", "[core]") {
  Worker worker({"test"});
  std::promise<void> quick, done;
  worker.aside(
      "slow", [&] { quick.get_future().wait(); }, [&] { done.set_value(); });
  worker.aside(
      "quick", [&] { quick.set_value(); }, [] {});
  done.get_future().wait();
}

TEST_CASE("a worker bounds the works of each name, and takes every outcome", "[core]") {
  std::atomic<int> outcomes = 0;
  Worker worker({.name = "test", .most_waiting = 1});
  {
    const Busy busy(worker);
    std::promise<void> began, goes_on;
    const auto add = [&](const char* name, Loop::Task work) {
      return worker.aside(name, std::move(work), [&] { ++outcomes; });
    };
    CHECK(add("slow", [&] {
            began.set_value();
            goes_on.get_future().wait();
          }) == Worker::Posted::yes);
    began.get_future().wait();
    CHECK(add("slow", [] {}) == Worker::Posted::yes);
    CHECK(add("slow", [] {}) == Worker::Posted::full);
    CHECK(add("other", [] {}) == Worker::Posted::yes);
    goes_on.set_value();
    // Both works of "slow" are done when a further one waits no more.
    std::promise<void> last;
    while (worker.aside(
               "slow", [&] { last.set_value(); }, [] {}) == Worker::Posted::full)
      std::this_thread::yield();
    last.get_future().wait();
  }
  while (outcomes < 3) std::this_thread::yield();
}

TEST_CASE("ending a worker finishes the running work and drops its outcome", "[core]") {
  bool finished = false, taken = false, ran = false;
  Worker worker({"test"});
  std::promise<void> began;
  worker.aside(
      "slow",
      [&] {
        began.set_value();
        // Until end() has been called.
        while (worker.post([] {}) != Worker::Posted::ended) std::this_thread::yield();
        finished = true;
      },
      [&] { taken = true; });
  auto dropped = std::make_shared<int>();
  const std::weak_ptr<int> lives = dropped;
  worker.aside(
      "slow", [&ran, held = std::move(dropped)] { ran = true; }, [] {});
  began.get_future().wait();
  worker.end();
  CHECK(finished);
  CHECK_FALSE(taken);
  CHECK_FALSE(ran);
  CHECK(lives.expired());
}
