#include "simulation/machine/executors.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/deferred_sends.h"
#include "catch.h"
#include "core/memory/tensor.h"

using namespace troupe;
using namespace troupe::simulation;
using namespace std::chrono_literals;

using actors::Job;
using actors::WorkTime;

namespace {

constexpr ExecutorTimes times{1ms, 3ms};

/// Notes what is called, with the time.
struct Notes {
  Scheduler& scheduler;
  std::vector<std::pair<std::string, Scheduler::Time>> all = {};

  void add(const std::string& what) { all.emplace_back(what, scheduler.now()); }
  std::vector<std::string> words() const {
    std::vector<std::string> words;
    for (const auto& [what, when] : all) words.push_back(what);
    return words;
  }
};

class Noted final : public Job {
 public:
  Noted(Notes& notes, std::string name) : notes_(notes), name_(std::move(name)) {}
  Noted(const Noted&) = delete;
  Noted& operator=(const Noted&) = delete;
  ~Noted() override { notes_.add(name_ + " freed"); }
  void work(Stream&) override {
    notes_.add(name_ + " works");
    actors::once_done([this] { notes_.add(name_ + " tells"); });
  }
  void done(const WorkTime& worked) override {
    worked_ = worked;
    notes_.add(name_ + " done");
    CHECK(worked.end - worked.start >= times.least);
    CHECK(worked.end - worked.start <= times.most);
    CHECK(worked.end == notes_.scheduler.now());
  }
  void lost(const std::string& why) override { notes_.add(name_ + " lost: " + why); }

 private:
  Notes& notes_;
  std::string name_;
  WorkTime worked_;
};

}  // namespace

TEST_CASE("simulated jobs run in order, one at a time, and take time", "[sim]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Scheduler scheduler({.seed = seed});
    const auto process = scheduler.add_process("node");
    Notes notes{scheduler};
    SimulatedExecutors executors(scheduler, process, times);
    const auto executor = executors.open(actors::OnCores{});
    executor->post(std::make_unique<Noted>(notes, "first"));
    executor->post(std::make_unique<Noted>(notes, "second"));
    CHECK(notes.all.empty());
    CHECK(scheduler.run_all() == Scheduler::Stopped::idle);
    CHECK(notes.words() == std::vector<std::string>{"first works", "first tells", "first done",
                                                    "first freed", "second works", "second tells",
                                                    "second done", "second freed"});
    // The messages of a job come when its time has passed.
    CHECK(notes.all[1].second - notes.all[0].second >= times.least);
    CHECK(notes.all[5].second - notes.all[4].second >= times.least);
    CHECK(notes.all[4].second >= notes.all[2].second);
  }
}

TEST_CASE("simulated executors work at the same time", "[sim]") {
  Scheduler scheduler({.seed = 1});
  const auto process = scheduler.add_process("node");
  Notes notes{scheduler};
  SimulatedExecutors executors(scheduler, process, times);
  const auto one = executors.open(actors::OnCores{});
  const auto other = executors.open(actors::OnCores{});
  CHECK(executors.open_executors() == 2);
  one->post(std::make_unique<Noted>(notes, "one"));
  other->post(std::make_unique<Noted>(notes, "other"));
  scheduler.run_all();
  CHECK(notes.all[0].second == notes.all[1].second);  // Both begin at once.
}

TEST_CASE("simulated executors finish their jobs before finish() calls", "[sim]") {
  Scheduler scheduler({.seed = 2});
  const auto process = scheduler.add_process("node");
  SimulatedExecutors executors(scheduler, process, times);
  auto first = executors.open(actors::OnCores{});
  auto second = executors.open(actors::OnCores{});
  // The second executor holds a tensor of the first.
  bool is_computed = false;
  first->post([&](Stream& stream) {
    const Tensor made = Tensor::make(stream.memory(), Shape{64}, DType::f32);
    second->post([made, &is_computed](Stream&) { is_computed = true; });
    actors::finish({first.get(), second.get()}, [&] {
      CHECK(is_computed);
      CHECK(first->memory().counters().bytes_in_use == 0);
      scheduler.trace("test", "finished");
      is_computed = false;
    });
  });
  CHECK(scheduler.run_all() == Scheduler::Stopped::idle);
  CHECK_FALSE(is_computed);
}

TEST_CASE("the end of a process drops the jobs of its executors", "[sim]") {
  Scheduler scheduler({.seed = 3});
  const auto process = scheduler.add_process("node");
  Notes notes{scheduler};
  SimulatedExecutors executors(scheduler, process, times);
  const auto executor = executors.open(actors::OnCores{});
  executor->post(std::make_unique<Noted>(notes, "first"));
  executor->post(std::make_unique<Noted>(notes, "second"));
  CHECK(scheduler.run_until([&] { return !notes.all.empty(); }, Scheduler::Time::max()) ==
        Scheduler::Stopped::done);
  scheduler.kill(process);
  CHECK(notes.words() == std::vector<std::string>{"first works", "first freed", "second freed"});
  executor->post(std::make_unique<Noted>(notes, "late"));
  CHECK(notes.words().back() == "late freed");
  bool is_finished = false;
  actors::finish({executor.get()}, [&] { is_finished = true; });
  CHECK(is_finished);
}

TEST_CASE("a simulated executor that is destroyed drops its jobs", "[sim]") {
  Scheduler scheduler({.seed = 4});
  const auto process = scheduler.add_process("node");
  Notes notes{scheduler};
  SimulatedExecutors executors(scheduler, process, times);
  auto executor = executors.open(actors::OnCores{});
  executor->post([](Stream& stream) { stream.make(Shape{8}); });
  executor->post(std::make_unique<Noted>(notes, "first"));
  executor.reset();
  CHECK(notes.words() == std::vector<std::string>{"first freed"});
  CHECK(executors.open_executors() == 0);
  scheduler.run_all();
  CHECK(scheduler.events() == 0);
}

TEST_CASE("jobs of a device are lost on a simulated machine", "[sim]") {
  Scheduler scheduler({.seed = 5});
  const auto process = scheduler.add_process("node");
  Notes notes{scheduler};
  SimulatedExecutors executors(scheduler, process, times);
  const auto executor = executors.open(actors::OnDevice{});
  REQUIRE(executor->fault());
  executor->post(std::make_unique<Noted>(notes, "first"));
  scheduler.run_all();
  CHECK(notes.words() ==
        std::vector<std::string>{"first lost: " + *executor->fault(), "first freed"});
}
