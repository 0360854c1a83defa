#include "simulation/machine/systems.h"

#include <memory>
#include <utility>

#include "catch.h"

using namespace troupe;
using namespace troupe::simulation;

namespace caf_shim = troupe::actors::caf_shim;

namespace {

struct Number {
  int number = 0;
};

}  // namespace

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(Number)

namespace {

/// Adds up the numbers that come. Owns something.
class NumberSum {
 public:
  static constexpr const char* name = "number sum";
  NumberSum(caf_shim::Base*, int* sum, std::shared_ptr<void> owned)
      : sum_(sum), owned_(std::move(owned)) {}
  caf::behavior make_behavior() {
    return {[this](const Number& number) { *sum_ += number.number; }};
  }

 private:
  int* sum_;
  std::shared_ptr<void> owned_;
};

struct Process {
  Scheduler scheduler{{.seed = 1}};
  ProcessId id = scheduler.add_process("process");
  SimulatedSystems systems{scheduler, id};
};

}  // namespace

TEST_CASE("a process may have several simulated actor systems", "[sim]") {
  Process process;
  const auto first = process.systems.make();
  const auto second = process.systems.make();
  CHECK(process.systems.count() == 2);
  int sum = 0;
  const auto owned = std::make_shared<int>(0);
  const auto one = caf_shim::spawn<NumberSum>(caf_shim::Spawner(*first, nullptr), &sum,
                                              std::shared_ptr<void>(owned));
  const auto other = caf_shim::spawn<NumberSum>(caf_shim::Spawner(*second, nullptr), &sum,
                                                std::shared_ptr<void>(owned));
  caf_shim::post(one, Number{1});
  caf_shim::post(other, Number{2});
  CHECK(sum == 0);
  process.scheduler.run_all();
  CHECK(sum == 3);
  CHECK(owned.use_count() == 3);
  bool has_ended = false;
  first->end_all([&] { has_ended = true; });
  process.scheduler.run_all();
  CHECK(has_ended);
  CHECK(owned.use_count() == 2);
}

TEST_CASE("all actors of a process that has ended are killed", "[sim]") {
  Process process;
  auto first = process.systems.make();
  // The state of an actor owns another system of the process.
  std::shared_ptr<caf_shim::System> second = process.systems.make();
  int sum = 0;
  const auto owned = std::make_shared<int>(0);
  auto other = caf_shim::spawn<NumberSum>(caf_shim::Spawner(*second, nullptr), &sum,
                                          std::shared_ptr<void>(owned));
  auto one = caf_shim::spawn<NumberSum>(caf_shim::Spawner(*first, nullptr), &sum,
                                        std::shared_ptr<void>(std::move(second)));
  process.scheduler.run_all();
  caf_shim::post(one, Number{1});
  other = nullptr;
  process.scheduler.kill(process.id);
  process.systems.kill_all();
  CHECK(sum == 0);
  CHECK(owned.use_count() == 1);
  CHECK(process.systems.count() == 1);
  one = nullptr;
  first.reset();
  CHECK(process.systems.count() == 0);
}

TEST_CASE("killed actors leave their groups while somebody refers to them", "[sim]") {
  Process process;
  const auto system = process.systems.make();
  int sum = 0;
  const auto group = std::make_shared<caf_shim::ActorGroup>();
  const auto spawn = [&] {
    return caf_shim::spawn<NumberSum>(caf_shim::Spawner(*system, group), &sum,
                                      std::shared_ptr<void>());
  };
  const auto has_run = spawn();
  process.scheduler.run_all();
  const auto has_not_run = spawn();
  caf_shim::post(has_run, Number{1});
  process.scheduler.kill(process.id);
  process.systems.kill_all();
  bool is_empty = false;
  group->when_empty([&] { is_empty = true; });
  CHECK(is_empty);
  CHECK(sum == 0);
}
