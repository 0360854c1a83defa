#include "world.h"

#include <algorithm>
#include <chrono>

namespace {

struct RunJob {
  std::shared_ptr<troupe::actors::Job> job;
};

}  // namespace

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(RunJob)

namespace troupe::actors {
namespace {

class JobActor {
 public:
  static constexpr const char* name = "executor";

  JobActor(caf_shim::Base* /*self*/, Stream* stream, std::size_t* waiting)
      : stream_(stream), waiting_(waiting) {}
  caf::behavior make_behavior() {
    return {[this](RunJob& run) {
      --*waiting_;
      const auto job = std::move(run.job);
      WorkTime worked{std::chrono::steady_clock::now(), {}};
      job->work(*stream_);
      stream_->wait();
      worked.end = std::chrono::steady_clock::now();
      job->done(worked);
    }};
  }

 private:
  Stream* stream_;
  std::size_t* waiting_;
};

class ActorExecutor final : public Executor {
 public:
  explicit ActorExecutor(caf::actor_system& system)
      : stream_(memory_), actor_(caf_shim::spawn<JobActor>(system, &stream_, &waiting_)) {}
  ActorExecutor(caf::actor_system& system, std::unique_ptr<Device> device,
                std::unique_ptr<MemorySource> memory)
      : device_(std::move(device)),
        memory_(std::move(memory)),
        stream_(memory_, *device_),
        actor_(caf_shim::spawn<JobActor>(system, &stream_, &waiting_)) {}

  using Executor::post;
  void post(std::unique_ptr<Job> job) override {
    if (!actor_) return;
    most_waiting_ = std::max(most_waiting_, ++waiting_);
    caf_shim::post(actor_, RunJob{std::move(job)});
  }
  const caf::actor& actor() const { return actor_; }
  std::size_t most_waiting() const { return most_waiting_; }
  MemoryPool& memory() override { return memory_; }
  MemoryPool& host_memory() override { return stream_.host_memory(); }
  void close() { actor_ = nullptr; }

 private:
  std::unique_ptr<Device> device_;  // Null: the cores compute.
  MemoryPool memory_;
  Stream stream_;
  std::size_t waiting_ = 0;
  std::size_t most_waiting_ = 0;
  caf::actor actor_;
};

}  // namespace

World::World(std::uint64_t seed)
    : system_(config_),
      scheduler_(dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler())),
      random_(seed) {
  // Else the system's end waits for actors that nobody runs.
  system_.await_actors_before_shutdown(false);
  settle();
}

World::~World() {
  thaw();
  for (auto& executor : executors_) static_cast<ActorExecutor&>(*executor).close();
  settle();
  scheduler_.clock().cancel_all();
}

bool World::step() {
  auto& jobs = scheduler_.jobs;
  const auto next = draw();
  if (!next) return false;
  std::swap(jobs[0], jobs[*next]);
  note(jobs[0]);
  ++steps_;
  return scheduler_.try_run_once();
}

std::optional<std::size_t> World::draw() {
  const auto& jobs = scheduler_.jobs;
  std::vector<std::size_t> awake;
  for (std::size_t i = 0; !frozen_.empty() && i < jobs.size(); ++i)
    if (const auto* actor = dynamic_cast<caf_shim::Base*>(jobs[i]);
        !actor || !frozen_.contains(actor->id()))
      awake.push_back(i);
  const auto count = frozen_.empty() ? jobs.size() : awake.size();
  if (count == 0) return {};
  if (in_order_) return frozen_.empty() ? 0 : awake[0];
  const auto drawn = std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
  return frozen_.empty() ? drawn : awake[drawn];
}

/// Every actor runs once when it begins, and is seen here.
void World::note(caf::resumable* job) {
  // The actor system has some of its own.
  if (auto* actor = dynamic_cast<caf_shim::Base*>(job))
    seen_.try_emplace(actor->id(), caf_shim::weak(*actor));
}

std::vector<World::Living> World::living() const {
  std::vector<Living> living;
  for (const auto& [id, weak] : seen_) {
    const auto actor = caf::actor_cast<caf::actor>(weak);
    if (!actor) continue;
    const auto& base = dynamic_cast<caf_shim::Base&>(*caf::actor_cast<caf::abstract_actor*>(actor));
    const std::string name = base.name();
    if (name != JobActor::name && !base.getf(caf::abstract_actor::is_terminated_flag))
      living.push_back({name, actor});
  }
  return living;
}

void World::freeze(const Executor& executor) {
  freeze(dynamic_cast<const ActorExecutor&>(executor).actor());
}

std::size_t World::most_waiting(const Executor& executor) {
  return dynamic_cast<const ActorExecutor&>(executor).most_waiting();
}

void World::settle() {
  while (step()) {
  }
}

bool World::run_until(const std::function<bool()>& done, caf_shim::Duration patience) {
  auto& clock = scheduler_.clock();
  const auto end = clock.current_time + patience;
  while (!done()) {
    if (step()) continue;
    if (clock.schedule().empty() || clock.schedule().begin()->first > end) return false;
    clock.trigger_timeout();
  }
  return true;
}

Executor& World::make_executor() {
  executors_.push_back(std::make_unique<ActorExecutor>(system_));
  return *executors_.back();
}

Executor& World::make_executor(std::unique_ptr<Device> device,
                               std::unique_ptr<MemorySource> memory) {
  executors_.push_back(
      std::make_unique<ActorExecutor>(system_, std::move(device), std::move(memory)));
  return *executors_.back();
}

}  // namespace troupe::actors
