#include "simulation/machine/env.h"

#include "catch.h"
#include "tests/core/env_contract.h"

using namespace troupe;
using namespace troupe::simulation;
using namespace std::chrono_literals;

namespace {

class SimulatedEnvUnderTest final : public EnvUnderTest {
 public:
  explicit SimulatedEnvUnderTest(const Scheduler::Options& options) : scheduler_(options) {}

  Env& env() override { return env_; }
  bool run_until(const std::function<bool()>& condition) override {
    return scheduler_.run_until(condition, scheduler_.now() + 30s) == Scheduler::Stopped::done;
  }

 private:
  Scheduler scheduler_;
  MachineConditions machine_;
  SimulatedEnv env_{scheduler_, scheduler_.add_process("process"), machine_};
};

/// A process with one loop, and what is known of its end.
struct OneEnvironment {
  explicit OneEnvironment(std::uint64_t seed = 1) : scheduler({.seed = seed}) {}

  Scheduler scheduler;
  MachineConditions machine;
  std::optional<Ending> ending;
  ProcessId process =
      scheduler.add_process("process", [this](const Ending& ended) { ending = ended; });
  SimulatedEnv env{scheduler, process, machine};
  std::unique_ptr<Loop> loop = env.make_loop({"main"});
  std::string text;
};

}  // namespace

TEST_CASE("the simulated environment keeps the contract of environments", "[sim]") {
  using Manner = Scheduler::Manner;
  const auto manner = GENERATE(Manner::evenly, Manner::by_priorities, Manner::in_order);
  const auto seed = GENERATE(range(std::uint64_t{0}, std::uint64_t{10}));
  SimulatedEnvUnderTest under_test({.seed = seed, .manner = manner});
  check_env_contract(under_test);
}

TEST_CASE("a simulated process ends with a code and last words", "[sim]") {
  OneEnvironment one;
  one.loop->post([&] { one.env.end_process(7, "the end\n"); });
  one.loop->post([&] { one.text += 'x'; });
  CHECK(one.scheduler.run_all() == Scheduler::Stopped::idle);
  REQUIRE(one.ending);
  CHECK(one.ending->how == Ending::How::ended);
  CHECK(one.ending->code == 7);
  CHECK(one.ending->last_words == "the end\n");
  CHECK(one.text.empty());
  CHECK(one.loop->post([] {}) == Loop::Posted::ended);
  CHECK_FALSE(one.loop->after(0ms, [] {}));
  CHECK(one.env.make_loop({"late"})->post([] {}) == Loop::Posted::ended);
  CHECK(one.loop->aside(
            "work", [] {}, [] {}) == Loop::Posted::ended);
}

TEST_CASE("a simulated process crashes in its work aside", "[sim]") {
  OneEnvironment one;
  one.loop->aside(
      "work", [&] { one.env.crash("lost\n"); }, [&] { one.text += 'x'; });
  CHECK(one.scheduler.run_all() == Scheduler::Stopped::idle);
  REQUIRE(one.ending);
  CHECK(one.ending->how == Ending::How::crashed);
  CHECK(one.ending->last_words == "lost\n");
  CHECK(one.text.empty());
}

TEST_CASE("a process is killed at a named point", "[sim]") {
  OneEnvironment one;
  one.env.on_point([&](const std::string& name) {
    if (name == "record_written") one.scheduler.kill(one.process);
  });
  one.loop->post([&] {
    one.env.point("orders_sent");
    one.text += 'a';
    one.env.point("record_written");
    one.text += 'x';
  });
  CHECK(one.scheduler.run_all() == Scheduler::Stopped::idle);
  REQUIRE(one.ending);
  CHECK(one.ending->how == Ending::How::killed);
  CHECK(one.text == "a");
}

TEST_CASE("a process is delayed at a named point", "[sim]") {
  OneEnvironment one;
  const auto people = one.scheduler.add_queue(Scheduler::world, "people");
  one.env.on_point([&](const std::string&) {
    one.scheduler.freeze(one.process);
    one.scheduler.after(people, 3s, [&] { one.scheduler.thaw(one.process); });
  });
  Env::Time ran;
  one.loop->post([&] {
    one.loop->post([&] { ran = one.env.now(); });
    one.env.point("orders_sent");
  });
  CHECK(one.scheduler.run_all() == Scheduler::Stopped::idle);
  CHECK(ran == Scheduler::start + 3s);
}

TEST_CASE("a machine may have a wrong calendar time", "[sim]") {
  OneEnvironment one;
  CHECK(one.env.wall_time() == SimulatedEnv::wall_start);
  one.machine.wall_offset = -1h;
  one.loop->after(5s, [] {});
  one.scheduler.run_all();
  CHECK(one.env.wall_time() == SimulatedEnv::wall_start - 1h + 5s);
  CHECK(one.env.now() == Scheduler::start + 5s);
}

TEST_CASE("work aside takes the time of its machine, and the loop goes on", "[sim]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    OneEnvironment one(seed);
    one.machine.least_work = 10ms;
    one.machine.most_work = 20ms;
    std::vector<Env::Time> outcomes;
    for (int i = 0; i < 3; ++i)
      one.loop->aside(
          "work", [] {}, [&] { outcomes.push_back(one.env.now()); });
    one.loop->after(5ms, [&] { CHECK(outcomes.empty()); });
    one.scheduler.run_all();
    REQUIRE(outcomes.size() == 3);
    auto before = Scheduler::start;
    for (const auto time : outcomes) {
      CHECK(time - before >= 10ms);
      CHECK(time - before <= 20ms);
      before = time;
    }
  }
}

TEST_CASE("tasks run between a work and its outcome in some seed", "[sim]") {
  bool between = false;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    OneEnvironment one(seed);
    one.loop->aside(
        "work", [&] { one.text += 'w'; }, [&] { one.text += 't'; });
    one.loop->after(1ms, [&] { one.text += 'p'; });
    one.scheduler.run_all();
    between = between || one.text == "wpt";
  }
  CHECK(between);
}

TEST_CASE("simulated processes draw other random numbers with another seed", "[sim]") {
  CHECK(OneEnvironment(3).env.random() == OneEnvironment(3).env.random());
  CHECK(OneEnvironment(3).env.random() != OneEnvironment(4).env.random());
}

TEST_CASE("a killed process is destroyed by its owner", "[sim]") {
  Scheduler scheduler({});
  MachineConditions machine;
  /// Posts to its own loop when it is destroyed.
  struct Service {
    explicit Service(Env& env) : loop(env.make_loop({"main"})) {}
    ~Service() {
      CHECK(loop->post([] {}) == Loop::Posted::ended);
    }
    std::unique_ptr<Loop> loop;
  };
  std::unique_ptr<SimulatedEnv> env;
  std::unique_ptr<Service> service;
  const auto process = scheduler.add_process("process", [&](const Ending&) {
    service.reset();
    env.reset();
  });
  env = std::make_unique<SimulatedEnv>(scheduler, process, machine);
  service = std::make_unique<Service>(*env);
  service->loop->post([&] { scheduler.kill(process); });
  service->loop->after(1s, [] {});
  service->loop->aside(
      "work", [] {}, [] {});
  CHECK(scheduler.run_all() == Scheduler::Stopped::idle);
  CHECK_FALSE(service);
  CHECK_FALSE(env);
}
