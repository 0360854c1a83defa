#include "core/threads/thread_stacks.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <thread>

#include "catch.h"
#include "core/threads/symbols.h"
#include "core/threads/thread_name.h"

using namespace troupe;

// Each keeps its thread in one place. They do work after it, so that no call is a jump.
[[gnu::noinline]] int wait_in_a_system_call(int descriptor) {
  char byte = 0;
  return static_cast<int>(read(descriptor, &byte, 1)) + byte;
}
[[gnu::noinline]] int wait_for_a_lock(std::mutex& mutex, int value) {
  mutex.lock();
  mutex.unlock();
  return value + 1;
}
[[gnu::noinline]] int compute_in_a_loop(const std::atomic<bool>& ends) {
  int rounds = 0;
  while (!ends.load(std::memory_order_relaxed)) ++rounds;
  return rounds;
}

namespace {

#if defined(__SANITIZE_THREAD__)
/// ThreadSanitizer runs handlers of signals only where it intercepts a call, which it leaves.
constexpr bool handlers_are_late = true;
#else
constexpr bool handlers_are_late = false;
#endif

std::string all_of(const ThreadStack& stack) {
  std::string text = stack.name + " " + stack.state + ": " + stack.why_none;
  for (const auto& frame : stack.frames) text += "\n  " + frame;
  return text;
}

/// Asks again until the thread of this name is where `function` is, as it soon will be.
bool is_in(const std::string& name, const std::string& function) {
  constexpr int tries = 2000;
  std::string last;
  for (int i = 0; i < tries; ++i) {
    const auto stacks = thread_stacks();
    const auto found = std::ranges::find(stacks, name, &ThreadStack::name);
    if (found == stacks.end()) continue;
    last = all_of(*found);
    if (std::ranges::any_of(found->frames, [&](const auto& frame) { return frame == function; }))
      return true;
    std::this_thread::yield();
  }
  UNSCOPED_INFO(last);
  return false;
}

}  // namespace

TEST_CASE("stacks tell where threads are, in system calls, locks and loops", "[core]") {
  std::array<int, 2> pipe_ends{};
  REQUIRE(pipe(pipe_ends.data()) == 0);
  std::mutex mutex;
  std::unique_lock held(mutex);
  std::atomic<bool> ends = false;
  std::thread calling([&] {
    name_thread("calling");
    (void)wait_in_a_system_call(pipe_ends[0]);
  });
  std::thread locked([&] {
    name_thread("locked");
    (void)wait_for_a_lock(mutex, 1);
  });
  std::thread computing([&] {
    name_thread("looping");
    (void)compute_in_a_loop(ends);
  });
  CHECK(is_in("calling", "wait_in_a_system_call"));
  if (!handlers_are_late) {
    CHECK(is_in("locked", "wait_for_a_lock"));
    CHECK(is_in("looping", "compute_in_a_loop"));
  }
  held.unlock();
  ends = true;
  // The system call was interrupted and goes on.
  CHECK(write(pipe_ends[1], "x", 1) == 1);
  calling.join();
  locked.join();
  computing.join();
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST_CASE("a thread that blocks signals has a reason in the place of its stack", "[core]") {
  std::promise<void> blocked, end;
  std::thread deaf([&] {
    name_thread("deaf");
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    blocked.set_value();
    end.get_future().wait();
  });
  blocked.get_future().wait();
  const auto stacks = thread_stacks();
  const auto found = std::ranges::find(stacks, "deaf", &ThreadStack::name);
  REQUIRE(found != stacks.end());
  CHECK(found->frames.empty());
  CHECK(found->why_none == "it blocks signals");
  end.set_value();
  deaf.join();
}

TEST_CASE("stacks keep to their bounds", "[core]") {
  StackLimits limits;
  limits.threads = 1;
  limits.frames = 2;
  limits.frame_bytes = 16;
  const auto stacks = thread_stacks(limits);
  REQUIRE(stacks.size() == 1);
  CHECK(stacks[0].frames.size() == 2);
  for (const auto& frame : stacks[0].frames) CHECK(frame.size() <= 16);
}

TEST_CASE("names of functions lose their arguments", "[core]") {
  constexpr std::size_t room = 60;
  CHECK(short_name("troupe::Worker::run()", room) == "troupe::Worker::run");
  CHECK(short_name("troupe::(anonymous namespace)::Loop::post(std::function<void ()>) const",
                   room) == "troupe::Loop::post");
  CHECK(short_name("void troupe::visit<int, std::vector<int> >(int (*)(long))", room) ==
        "troupe::visit");
  CHECK(short_name("troupe::Work::go()::{lambda(int)#1}::operator()(int) const", room) ==
        "troupe::Work::go::{lambda#1}::operator()");
  CHECK(short_name("troupe::Value::operator<(troupe::Value const&) const", room) ==
        "troupe::Value::operator<");
  CHECK(short_name("troupe::Task::operator()(int)", room) == "troupe::Task::operator()");
  CHECK(short_name("main", room) == "main");
  CHECK(short_name("libc.so.6+0x84e20", room) == "libc.so.6+0x84e20");
  CHECK(short_name("troupe::actors::StageActor::advance()", 20) == "...ageActor::advance");
}
