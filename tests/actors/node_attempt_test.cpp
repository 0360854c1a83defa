#include "actors/nodes/node_attempt.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/nodes/placement.h"
#include "catch.h"
#include "core/threads/real_env.h"
#include "little_run.h"
#include "transport/real_network.h"

using namespace troupe;
using namespace troupe::actors;
using namespace std::chrono_literals;

namespace {

using AttemptPhase = NodeAttempt::Phase;

/// A loop whose tasks the test runs on its own thread. Its timers never fire.
class LoopByHand final : public Loop {
 public:
  Posted post(Task task) override {
    {
      const std::lock_guard lock(mutex_);
      if (has_ended_) return Posted::ended;
      tasks_.push_back(std::move(task));
    }
    came_.notify_all();
    return Posted::yes;
  }
  std::optional<Timer> after(std::chrono::nanoseconds, Task task) override {
    const std::lock_guard lock(mutex_);
    if (has_ended_) return {};
    const Timer timer{++timer_};
    timers_.emplace(timer, std::move(task));
    return timer;
  }
  void cancel(Timer timer) override {
    const std::lock_guard lock(mutex_);
    timers_.erase(timer);
  }
  Posted aside(const std::string&, Task work, Task then) override {
    if (!holds_works_) {
      post(std::move(work));
      return post(std::move(then));
    }
    held_.push_back(std::move(work));
    held_.push_back(std::move(then));
    return Posted::yes;
  }
  void end() override {
    std::deque<Task> dropped;
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    timers_.clear();
    std::swap(dropped, tasks_);
    held_.clear();
  }

  /// Keeps works from now on, until go_on().
  void hold_works() { holds_works_ = true; }
  void go_on() {
    holds_works_ = false;
    for (auto& task : std::exchange(held_, {})) post(std::move(task));
  }

  /// Runs tasks until `holds` is true. Returns false if no task comes for long.
  bool run_until(const std::function<bool()>& holds) {
    while (!holds()) {
      std::unique_lock lock(mutex_);
      if (!came_.wait_for(lock, 60s, [&] { return !tasks_.empty(); })) return false;
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      ++count_;
      task();
    }
    return true;
  }
  int count() const { return count_; }
  std::size_t timers() const { return timers_.size(); }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Task> tasks_;
  std::map<Timer, Task> timers_;
  std::deque<Task> held_;
  std::uint64_t timer_ = 0;
  bool has_ended_ = false;
  bool holds_works_ = false;
  int count_ = 0;
};

Piece one_stage() {
  RoundShape shape;
  shape.micro_batches = shape.groups = 2;
  return Piece::of("mlp", shape);
}

/// A run whose only device computes on a thread.
class ThreadHome final : public RunHome {
 public:
  explicit ThreadHome(std::promise<std::size_t>& gone)
      : gone_(gone), run_(one_stage()), spec_(run_.spec([this]() -> Executor& {
          return *executors_.emplace_back(std::make_unique<ComputingThread>(1));
        })) {}
  /// Tells how many bytes are still in use.
  ~ThreadHome() override {
    std::vector<Executor*> all;
    for (const auto& executor : executors_) all.push_back(executor.get());
    actors::finish(all);
    std::size_t bytes = 0;
    for (const auto& executor : executors_) bytes += executor->memory().counters().bytes_in_use;
    gone_.set_value(bytes);
  }
  RunSpecPtr spec() override { return spec_; }
  std::chrono::nanoseconds head_patience() const override { return 1min; }
  void finish(std::function<void()> then) override {
    std::vector<Executor*> all;
    for (const auto& executor : executors_) all.push_back(executor.get());
    actors::finish(all, std::move(then));
  }

 private:
  std::promise<std::size_t>& gone_;
  std::vector<std::unique_ptr<Executor>> executors_;
  LittleRun run_;
  std::shared_ptr<RunSpec> spec_;
};

/// A node attempt that plays all of a run, and its head.
class OneNode {
 public:
  OneNode()
      : head_run_(one_stage()),
        head_spec_(head_run_.spec([this]() -> Executor& { return head_executor_; })) {
    const auto placement = place(*head_spec_, {0}, 1);
    MeshOrder mesh;
    mesh.epoch = epoch_of("little", 1);
    mesh.here = placement.head();
    mesh.processes = placement.processes;
    mesh.tokens = {head_token, 0};
    mesh.bound = bound_of(*head_spec_);
    mesh.memory = &head_memory_;
    mesh.on_wire_message = [](int, PlayerId, const WireMessage&) {};
    mesh.on_lost = [](int, const std::string&) {};
    head_mesh_ = std::move(*Mesh::open(network_, std::move(mesh)));

    NodeAttemptOrder order;
    order.open_home = [this]() -> Result<std::shared_ptr<RunHome>> {
      was_opened_ = true;
      return std::shared_ptr<RunHome>(std::make_shared<ThreadHome>(home_gone_));
    };
    order.find_store = [](RunHome&) { return nullptr; };
    order.prepare.placement = placement;
    order.prepare.tokens = {0, 1};
    order.attempt = 1;
    order.epoch = epoch_of("little", 1);
    order.stuck = [this](const std::string& why) { stuck = why; };
    order.tell_head = [this](const transport::Message& message) {
      if (message.type == Prepared::type)
        address_ = transport::from_message<Prepared>(message)->address;
      return Status(Done{});
    };
    loop.hold_works();
    attempt = std::make_unique<NodeAttempt>(NodeAttempt::Context{env_, loop, network_, system_},
                                            std::move(order), [](const Status&) {});
  }
  ~OneNode() {
    loop.end();
    attempt.reset();
  }

  /// Lets the attempt come to a phase. Works wait in the phases that wait for one.
  void reach(AttemptPhase wanted) {
    if (wanted == AttemptPhase::preparing) return;
    loop.go_on();
    wait_for(AttemptPhase::prepared);
    if (wanted == AttemptPhase::prepared) return;
    Start start;
    start.addresses = {address_, head_mesh_->address()};
    start.tokens = {0, head_token};
    if (wanted == AttemptPhase::failed) start.tokens.clear();
    if (wanted == AttemptPhase::loading) start.states = {1};
    if (wanted == AttemptPhase::connecting) loop.hold_works();
    attempt->start(start);
    if (wanted != AttemptPhase::ending) return wait_for(wanted);
    wait_for(AttemptPhase::playing);
    loop.hold_works();
    attempt->end([] {});
    wait_for(wanted);
  }
  void wait_for(AttemptPhase wanted) {
    REQUIRE(loop.run_until([&] { return attempt->phase() == wanted; }));
  }

  bool was_opened() const { return was_opened_; }
  /// Returns the bytes in use when the run's home was destroyed.
  std::optional<std::size_t> bytes_left() {
    auto gone = home_gone_.get_future();
    if (gone.wait_for(60s) != std::future_status::ready) return {};
    return gone.get();
  }

  LoopByHand loop;
  std::unique_ptr<NodeAttempt> attempt;
  std::string stuck;

 private:
  static constexpr std::int64_t head_token = 7;

  std::promise<std::size_t> home_gone_;
  bool was_opened_ = false;
  MeshAddress address_;
  RealEnv env_;
  transport::RealNetwork network_;
  caf_shim::RealSystem system_;
  MemoryPool head_memory_;
  ComputingThread head_executor_{1};
  LittleRun head_run_;
  std::shared_ptr<RunSpec> head_spec_;
  std::unique_ptr<Mesh> head_mesh_;
};

const std::map<AttemptPhase, std::string> phases = {
    {AttemptPhase::preparing, "preparing"},   {AttemptPhase::prepared, "prepared"},
    {AttemptPhase::connecting, "connecting"}, {AttemptPhase::loading, "loading"},
    {AttemptPhase::playing, "playing"},       {AttemptPhase::failed, "failed"},
    {AttemptPhase::ending, "ending"}};

}  // namespace

TEST_CASE("a node attempt ends in each phase and leaves nothing behind", "[actors]") {
  constexpr int most_tasks = 12;  // From the end of its work to its own end.
  for (const auto& [phase, name] : phases) {
    INFO(name);
    OneNode node;
    node.reach(phase);
    bool has_ended = false;
    node.attempt->end([&] { has_ended = true; });
    CHECK_FALSE(has_ended);
    const int before = node.loop.count();
    node.loop.go_on();
    REQUIRE(node.loop.run_until([&] { return has_ended; }));
    CHECK(node.loop.count() - before <= most_tasks);
    CHECK(node.attempt->phase() == AttemptPhase::ended);
    CHECK(node.loop.timers() == 0);
    CHECK(node.bytes_left() == std::optional<std::size_t>(0));
    CHECK(node.stuck.empty());
  }
}

TEST_CASE("a node attempt that is dropped in any phase leaves nothing behind", "[actors]") {
  for (const auto& [phase, name] : phases) {
    INFO(name);
    OneNode node;
    node.reach(phase);
    node.loop.end();
    node.attempt.reset();
    if (node.was_opened()) CHECK(node.bytes_left() == std::optional<std::size_t>(0));
  }
}

TEST_CASE("an end that is asked for twice is told twice", "[actors]") {
  OneNode node;
  node.reach(AttemptPhase::playing);
  int told = 0;
  for (int i = 0; i < 2; ++i) node.attempt->end([&] { ++told; });
  REQUIRE(node.loop.run_until([&] { return told == 2; }));
  node.attempt->end([&] { ++told; });
  CHECK(told == 3);
}

TEST_CASE("a node attempt ignores events that its phase does not expect", "[actors]") {
  OneNode node;
  node.attempt->start(Start{});
  CHECK(node.attempt->phase() == AttemptPhase::preparing);
  node.reach(AttemptPhase::playing);
  node.attempt->start(Start{});
  CHECK(node.attempt->phase() == AttemptPhase::playing);
}

namespace {

/// A message that can be watched until it is freed.
struct Watched {
  std::shared_ptr<int> content;
};

}  // namespace

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(Watched)

namespace {

/// An actor that ends when it gets a message, while the message still exists.
class EndsWithMessage {
 public:
  static constexpr const char* name = "ends with message";

  explicit EndsWithMessage(caf_shim::Base* self) : self_(self) {}
  caf::behavior make_behavior() {
    return {[this](const Watched&) { self_->quit(); }};
  }

 private:
  caf_shim::Base* self_;
};

}  // namespace

TEST_CASE("a group of actors is empty when the last message of the last actor is freed",
          "[actors]") {
  caf_shim::RealSystem system;
  for (int i = 0; i < 100; ++i) {
    const auto group = std::make_shared<caf_shim::ActorGroup>();
    const caf_shim::Spawner spawner(system, group);
    const auto empty = std::make_shared<std::promise<bool>>();
    auto content = std::make_shared<int>(i);
    const std::weak_ptr<int> watched = content;
    {
      const auto one = caf_shim::spawn<EndsWithMessage>(spawner);
      const auto other = caf_shim::spawn<EndsWithMessage>(spawner);
      group->when_empty([empty, watched] { empty->set_value(watched.expired()); });
      caf_shim::post(one, Watched{content});
      caf_shim::post(other, Watched{std::move(content)});
    }
    CHECK(empty->get_future().get());
  }
}

TEST_CASE("an empty group says so at once, and a group can be killed", "[actors]") {
  caf_shim::RealSystem system;
  const auto group = std::make_shared<caf_shim::ActorGroup>();
  bool is_empty = false;
  group->when_empty([&] { is_empty = true; });
  CHECK(is_empty);
  const auto actor = caf_shim::spawn<EndsWithMessage>({system, group});
  const auto empty = std::make_shared<std::promise<void>>();
  group->when_empty([empty] { empty->set_value(); });
  group->kill_all();
  CHECK(empty->get_future().wait_for(60s) == std::future_status::ready);
}

TEST_CASE("an actor that enters a killed group is killed too", "[actors]") {
  caf_shim::RealSystem system;
  const auto group = std::make_shared<caf_shim::ActorGroup>();
  group->kill_all();
  const auto actor = caf_shim::spawn<EndsWithMessage>({system, group});
  const auto empty = std::make_shared<std::promise<void>>();
  group->when_empty([empty] { empty->set_value(); });
  CHECK(empty->get_future().wait_for(60s) == std::future_status::ready);
}

TEST_CASE("a system ends the actors of all its groups", "[actors]") {
  const std::unique_ptr<caf_shim::System> system = caf_shim::RealSystems().make();
  const auto one = caf_shim::spawn<EndsWithMessage>({*system, nullptr});
  const auto group = std::make_shared<caf_shim::ActorGroup>();
  const auto other = caf_shim::spawn<EndsWithMessage>({*system, group});
  const auto ended = std::make_shared<std::promise<void>>();
  system->end_all([ended] { ended->set_value(); });
  CHECK(ended->get_future().wait_for(60s) == std::future_status::ready);
  bool is_empty = false;
  group->when_empty([&] { is_empty = true; });
  CHECK(is_empty);
}
