#include "apps/events/event_sink.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/events/event.h"
#include "apps/events/file_sink.h"
#include "apps/events/recorder.h"
#include "catch.h"
#include "core/json.h"
#include "core/threads/real_env.h"
#include "storage/files/files.h"

namespace troupe::apps {
namespace {

RealEnv env;

/// The records of a sink. They outlive it.
struct Received {
  std::vector<std::string> calls;
  std::vector<double> times;
  std::atomic<int> callers = 0;
  bool was_alone = true;  // No two calls at a time.
};

class KeepingSink final : public EventSink {
 public:
  explicit KeepingSink(Received& received) : received_(received) {}

  void event(const Value& event) override {
    if (received_.callers++ > 0) received_.was_alone = false;
    received_.calls.push_back(text_of(event, "type") + " " + text_of(event, "step"));
    received_.times.push_back(number_in(event, "time"));
    --received_.callers;
  }
  void say(const std::string& text) override { received_.calls.push_back("say " + text); }
  void flush() override { received_.calls.emplace_back("flush"); }
  void close() override { received_.calls.emplace_back("close"); }

 private:
  Received& received_;
};

Value step(int number) {
  Value value = event("step", "r");
  value.set("step", number);
  return value;
}

/// A recorder with these sinks of ours.
template <class... Sinks>
std::unique_ptr<Recorder> recorder_with(std::unique_ptr<Sinks>... each) {
  std::vector<std::unique_ptr<EventSink>> sinks;
  (sinks.push_back(std::move(each)), ...);
  return std::make_unique<Recorder>(env, std::move(sinks));
}

TEST_CASE("each sink receives all events, with one time, and is closed at the end", "[apps]") {
  Received first, second;
  {
    const auto recorder =
        recorder_with(std::make_unique<KeepingSink>(first), std::make_unique<KeepingSink>(second));
    recorder->record(step(1));
    recorder->say("data: made up");
    recorder->record(step(2));
  }
  const std::vector<std::string> calls = {"step 1", "flush", "say data: made up",
                                          "step 2", "flush", "close"};
  CHECK(first.calls == calls);
  CHECK(second.calls == calls);
  CHECK(first.times.front() > 0);
  CHECK(first.times == second.times);
}

TEST_CASE("an event that has a time keeps it", "[apps]") {
  Received received;
  Value old = step(1);
  old.set("time", 12.5);
  recorder_with(std::make_unique<KeepingSink>(received))->record(old);
  CHECK(received.times == std::vector<double>{12.5});
}

TEST_CASE("events of several threads come to a sink one by one", "[apps]") {
  Received received;
  {
    const auto recorder = recorder_with(std::make_unique<KeepingSink>(received));
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 500; ++i) recorder->record(step(i));
      });
    for (auto& thread : threads) thread.join();
  }
  CHECK(received.was_alone);
  CHECK(received.times.size() == 2000);
  CHECK(received.calls.size() == 2 * 2000 + 1);
}

TEST_CASE("a sink whose disk is full keeps no event from the other sinks", "[apps]") {
  const auto files = storage::disk_files();
  auto full = FileSink::open(env, *files, "/dev/full");
  REQUIRE(full);
  Received received;
  recorder_with(std::move(*full), std::make_unique<KeepingSink>(received))->record(step(1));
  CHECK(received.calls == std::vector<std::string>{"step 1", "flush", "close"});
}

}  // namespace
}  // namespace troupe::apps
