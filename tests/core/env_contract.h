#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "catch.h"
#include "core/env.h"

namespace troupe {

/// An environment under test, and how a test waits for its loops.
class EnvUnderTest {
 public:
  virtual ~EnvUnderTest() = default;
  virtual Env& env() = 0;
  /// Lets loops run until the condition holds. Returns false if it does not hold in time.
  virtual bool run_until(const std::function<bool()>& condition) = 0;
};

/// Letters in the order in which tasks add them.
class Trail {
 public:
  void add(char letter) {
    const std::lock_guard lock(mutex_);
    text_ += letter;
  }
  /// Returns a task that adds a letter.
  Loop::Task adds(char letter) {
    return [this, letter] { add(letter); };
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  std::size_t size() const { return text().size(); }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

/// Checks what every environment promises. No task waits, so that an environment with a single
/// thread can run them. No task checks, since checks are for one thread at a time.
inline void check_env_contract(EnvUnderTest& under_test) {
  using namespace std::chrono_literals;
  Env& env = under_test.env();
  Trail trail;
  const auto wait_for = [&](std::size_t letters) {
    const bool came = under_test.run_until([&] { return trail.size() >= letters; });
    REQUIRE(came);
  };

  SECTION("tasks run in the order in which they are posted") {
    const auto loop = env.make_loop({"test"});
    loop->post([&] {
      trail.add('a');
      loop->post(trail.adds('d'));
      trail.add('b');
      loop->post(trail.adds('e'));
      trail.add('c');
    });
    wait_for(5);
    CHECK(trail.text() == "abcde");
  }

  SECTION("a timer runs when its time has passed, and not before") {
    const auto loop = env.make_loop({"test"});
    const auto asked = env.now();
    Env::Time ran;
    loop->after(5ms, [&] {
      ran = env.now();
      trail.add('a');
    });
    wait_for(1);
    CHECK(ran - asked >= 5ms);
  }

  SECTION("timers run in the order in which they are due") {
    const auto loop = env.make_loop({"test"});
    constexpr auto late = 200ms, soon = 1ms;
    Env::Time before, after;
    loop->post([&] {
      before = env.now();
      loop->after(late, trail.adds('b'));
      loop->after(soon, trail.adds('a'));
      after = env.now();
      loop->post(trail.adds('0'));
    });
    wait_for(3);
    // A thread that stops between the two calls may set the second timer too late.
    if (after - before < late - soon) CHECK(trail.text() == "0ab");
  }

  SECTION("timers that are due at the same time run in order") {
    const auto loop = env.make_loop({"test"});
    loop->post([&] {
      for (const char letter : {'a', 'b', 'c'}) loop->after(0ms, trail.adds(letter));
      loop->post(trail.adds('d'));
    });
    wait_for(4);
    CHECK(trail.text() == "abcd");
  }

  SECTION("the longest delay does not overflow") {
    const auto loop = env.make_loop({"test"});
    CHECK(loop->after(std::chrono::nanoseconds::max(), trail.adds('x')));
    loop->post(trail.adds('a'));
    wait_for(1);
    CHECK(trail.text() == "a");
  }

  SECTION("a cancelled timer does not run") {
    const auto loop = env.make_loop({"test"});
    auto held = std::make_shared<int>();
    const std::weak_ptr<int> lives = held;
    loop->post([&] {
      const auto timer = loop->after(1ms, [&trail, held = std::move(held)] { trail.add('x'); });
      loop->after(2ms, trail.adds('a'));
      loop->cancel(*timer);
      loop->cancel(*timer);
    });
    wait_for(1);
    CHECK(trail.text() == "a");
    CHECK(lives.expired());
  }

  SECTION("a timer can be cancelled after it has run") {
    const auto loop = env.make_loop({"test"});
    const auto timer = loop->after(0ms, trail.adds('a'));
    REQUIRE(timer);
    wait_for(1);
    loop->cancel(*timer);
    loop->post(trail.adds('b'));
    wait_for(2);
    CHECK(trail.text() == "ab");
  }

  SECTION("a loop refuses tasks beyond its bound, and takes tasks again later") {
    const auto loop = env.make_loop({.name = "test", .most_waiting = 2});
    std::vector<Loop::Posted> posted;
    std::vector<bool> set;
    loop->post([&] {
      posted.push_back(loop->post(trail.adds('a')));
      set.push_back(loop->after(0ms, trail.adds('b')).has_value());
      posted.push_back(loop->post(trail.adds('x')));
      set.push_back(loop->after(0ms, trail.adds('x')).has_value());
    });
    wait_for(2);
    CHECK(posted == std::vector{Loop::Posted::yes, Loop::Posted::full});
    CHECK(set == std::vector{true, false});
    CHECK(loop->post(trail.adds('c')) == Loop::Posted::yes);
    wait_for(3);
    CHECK(trail.text() == "abc");
  }

  SECTION("end() drops what waits, and nothing begins afterwards") {
    const auto loop = env.make_loop({"test"});
    std::atomic<int> begun = 0, finished = 0;
    for (int i = 0; i < 100; ++i)
      loop->post([&] {
        ++begun;
        ++finished;
      });
    auto held = std::make_shared<int>();
    const std::weak_ptr<int> lives = held;
    loop->after(24h, [held = std::move(held)] {});
    loop->end();
    const int in_the_end = begun;
    CHECK(finished == in_the_end);
    CHECK(lives.expired());
    CHECK(loop->post([] {}) == Loop::Posted::ended);
    CHECK_FALSE(loop->after(0ms, [] {}));
    CHECK(loop->aside(
              "work", [] {}, [] {}) == Loop::Posted::ended);
    loop->end();
    CHECK(begun == in_the_end);
  }

  SECTION("a destructor ends its loop") {
    auto loop = env.make_loop({"test"});
    auto held = std::make_shared<int>();
    const std::weak_ptr<int> lives = held;
    loop->after(24h, [held = std::move(held)] {});
    loop.reset();
    CHECK(lives.expired());
  }

  SECTION("a task can make, use and end another loop") {
    const auto loop = env.make_loop({"test"});
    auto other = env.make_loop({"other"});
    loop->post([&] {
      other->post([&] {
        trail.add('a');
        loop->post([&] {
          other->end();
          other = env.make_loop({"third"});
          other->post(trail.adds('b'));
        });
      });
    });
    wait_for(2);
    loop->end();  // The task may still be on its way out of the other loop's function.
    CHECK(trail.text() == "ab");
  }

  SECTION("time never moves back") {
    const auto loop = env.make_loop({"test"});
    constexpr int count = 20;
    std::vector<Env::Time> times;
    for (int i = 0; i < count; ++i)
      loop->after(std::chrono::microseconds(100 * i), [&] {
        times.push_back(env.now());
        trail.add('a');
      });
    wait_for(count);
    CHECK(std::is_sorted(times.begin(), times.end()));
    CHECK(env.now() >= times.back());
    CHECK(env.wall_time() > Env::WallTime());
  }

  SECTION("every bit of random numbers is drawn") {
    std::uint64_t ever_set = 0, always_set = ~std::uint64_t{0};
    for (int i = 0; i < 128; ++i) {
      const auto drawn = env.random();
      ever_set |= drawn;
      always_set &= drawn;
    }
    CHECK(ever_set == ~std::uint64_t{0});
    CHECK(always_set == 0);
  }

  SECTION("work aside runs before its outcome, and each in order") {
    const auto loop = env.make_loop({"test"});
    Trail works;
    for (const char letter : {'a', 'b', 'c'})
      CHECK(loop->aside("work", works.adds(letter), [&trail, &works, letter] {
        if (works.text().find(letter) != std::string::npos) trail.add(letter);
      }) == Loop::Posted::yes);
    wait_for(3);
    CHECK(works.text() == "abc");
    CHECK(trail.text() == "abc");
  }

  SECTION("outcomes of work are tasks of the loop") {
    const auto loop = env.make_loop({"test"});
    int count = 0;  // No lock protects it.
    constexpr int each = 100;
    for (int i = 0; i < each; ++i) {
      loop->aside(
          "work", [] {},
          [&] {
            ++count;
            trail.add('a');
          });
      loop->post([&] {
        ++count;
        trail.add('a');
      });
    }
    wait_for(2 * each);
    CHECK(count == 2 * each);
  }

  SECTION("outcomes of work come even if the loop is full") {
    const auto loop = env.make_loop({.name = "test", .most_waiting = 1});
    std::vector<Loop::Posted> posted;
    loop->post([&] {
      posted.push_back(loop->post(trail.adds('a')));
      posted.push_back(loop->aside(
          "one", [] {}, trail.adds('b')));
      posted.push_back(loop->aside(
          "other", [] {}, trail.adds('b')));
    });
    wait_for(3);
    CHECK(posted == std::vector(3, Loop::Posted::yes));
    CHECK(trail.text() == "abb");
  }

  SECTION("what a work holds is freed before its outcome runs") {
    const auto loop = env.make_loop({"test"});
    auto held = std::make_shared<int>();
    const std::weak_ptr<int> lives = held;
    bool is_freed = false;
    loop->aside(
        "work", [held = std::move(held)] {},
        [&trail, &is_freed, lives] {
          is_freed = lives.expired();
          trail.add('a');
        });
    wait_for(1);
    CHECK(is_freed);
  }

  SECTION("a cancelled timer makes room for another task") {
    const auto loop = env.make_loop({.name = "test", .most_waiting = 1});
    const auto timer = loop->after(24h, trail.adds('x'));
    REQUIRE(timer);
    CHECK(loop->post(trail.adds('x')) == Loop::Posted::full);
    loop->cancel(*timer);
    CHECK(loop->post(trail.adds('a')) == Loop::Posted::yes);
    wait_for(1);
    CHECK(trail.text() == "a");
  }

  SECTION("end() drops waiting work and outcomes") {
    const auto loop = env.make_loop({"test"});
    std::atomic<int> begun = 0, finished = 0, taken = 0;
    for (int i = 0; i < 100; ++i)
      loop->aside(
          "work",
          [&] {
            ++begun;
            ++finished;
          },
          [&] { ++taken; });
    auto held = std::make_shared<int>();
    const std::weak_ptr<int> lives = held;
    loop->aside(
        "work", [] {}, [held = std::move(held)] {});
    loop->end();
    const int in_the_end = begun, taken_in_the_end = taken;
    CHECK(finished == in_the_end);
    CHECK(lives.expired());
    CHECK(begun == in_the_end);
    CHECK(taken == taken_in_the_end);
  }

  SECTION("named points change nothing") {
    env.point("test");
    const auto loop = env.make_loop({"test"});
    loop->post([&] {
      env.point("test");
      trail.add('a');
    });
    wait_for(1);
  }
}

}  // namespace troupe
