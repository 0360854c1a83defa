#include "world.h"

namespace {

struct RunJob {
  std::shared_ptr<troupe::actors::Executor::Job> job;
};

}  // namespace

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(RunJob)

namespace troupe::actors {
namespace {

class JobActor {
 public:
  static constexpr const char* name = "executor";

  JobActor(rt::Base* /*self*/, Stream* stream) : stream_(stream) {}
  caf::behavior make_behavior() {
    return {[this](const RunJob& run) { (*run.job)(*stream_); }};
  }

 private:
  Stream* stream_;
};

class ActorExecutor final : public Executor {
 public:
  explicit ActorExecutor(caf::actor_system& system)
      : stream_(memory_), actor_(rt::spawn<JobActor>(system, &stream_)) {}

  void post(Job job) override {
    if (actor_) rt::post(actor_, RunJob{std::make_shared<Job>(std::move(job))});
  }
  MemoryPool& memory() override { return memory_; }
  void close() { actor_ = nullptr; }

 private:
  MemoryPool memory_;
  Stream stream_;
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
  for (auto& executor : executors_) static_cast<ActorExecutor&>(*executor).close();
  settle();
  scheduler_.clock().cancel_all();
}

bool World::step() {
  auto& jobs = scheduler_.jobs;
  if (jobs.empty()) return false;
  const auto next = std::uniform_int_distribution<std::size_t>(0, jobs.size() - 1)(random_);
  std::swap(jobs[0], jobs[next]);
  ++steps_;
  return scheduler_.try_run_once();
}

void World::settle() {
  while (step()) {
  }
}

bool World::run_until(const std::function<bool()>& done, rt::Duration patience) {
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

}  // namespace troupe::actors
