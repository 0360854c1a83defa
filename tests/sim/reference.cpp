#include "tests/sim/reference.h"

#include <memory>
#include <mutex>
#include <utility>

#include "actors/executors.h"
#include "apps/run/run_session.h"
#include "apps/run/run_setup.h"
#include "catch.h"
#include "config/load.h"
#include "core/memory/memory_pool.h"
#include "core/memory/stream.h"
#include "core/threads/event_fd.h"
#include "core/threads/real_env.h"
#include "storage/files/memory_files.h"
#include "tests/sim/data.h"

namespace troupe::simulation {
namespace {

/// Runs each job at once, in the thread that posts it: threads that wait for each other take most
/// of the time of a tiny run.
class ImmediateExecutor final : public actors::Executor {
 public:
  using Executor::post;
  void post(std::unique_ptr<actors::Job> job) override {
    prepare_computing_thread();
    const std::lock_guard lock(mutex_);
    actors::WorkTime worked{actors::Pace::Clock::now(), {}};
    job->work(stream_);
    worked.end = actors::Pace::Clock::now();
    job->done(worked);
  }
  MemoryPool& memory() override { return memory_; }

 private:
  std::recursive_mutex mutex_;  // A job may post another one.
  MemoryPool memory_;
  Stream stream_{memory_};
};

class ImmediateExecutors final : public actors::Executors {
 public:
  std::unique_ptr<actors::Executor> open(const actors::OnCores&) override {
    return std::make_unique<ImmediateExecutor>();
  }
  std::unique_ptr<actors::Executor> open(actors::OnDevice) override {
    return std::make_unique<ImmediateExecutor>();
  }
};

}  // namespace

TrainedSteps really_trained(const Value& config) {
  RealEnv env;
  EventFd bell;
  storage::MemoryFiles files;
  const bool has_spikes = config.find("train") && config.find("train")->find("on_spike");
  write_data(files, has_spikes ? DataThere::spiky : DataThere::whole);
  ImmediateExecutors executors;
  apps::HostFacts host;
  host.host = "real";
  Value alone = config;
  // An asynchronous run has the weights of its own pipeline.
  if (!config.find("staleness")) alone.set("pipeline", Value::Map{{"stages", 1, {}}});
  alone.set("elastic", Value::Map{{"copies", 1, {}}});
  alone.set("checkpoint", Value::Map{{"every", "1 steps", {}}, {"keep", 1, {}}});
  auto loaded = config::load_message(alone, "test");
  INFO((loaded ? "" : loaded.error().text));
  REQUIRE(loaded);
  auto setup = apps::set_up(files, loaded->config);
  INFO((setup ? "" : setup.error().text));
  REQUIRE(setup);
  apps::RunSession session({env, host, files, files}, std::move(*loaded), apps::RunStart::anew,
                           [](const std::string&) {});
  actors::caf_shim::RealSystem system(1);
  REQUIRE(session.plan(std::move(*setup), {},
                       {.executors = executors, .are_here = [](int) { return true; }}));
  REQUIRE(session.enter());
  std::mutex mutex;
  TrainedSteps trained;
  const auto outcome = session.play_here(
      bell, system,
      [&](const Value& event) {
        const std::lock_guard lock(mutex);
        const auto type = text_in(event, "type");
        const auto step = integer_in(event, "step");
        if (type == "checkpoint.saved") trained[step].weights = text_in(event, "weights");
        if (type == "step") trained[step].loss = number_in(event, "loss");
        if (type == "eval") trained[step].evaluated = number_in(event, "loss");
      },
      nullptr, [] {},
      [&, now = session.loaded()](std::int64_t step) mutable -> Result<actors::RunSpecPtr> {
        now = config::leave_out_step(now, step);
        return Result(session.run().changed(now));
      });
  INFO(outcome.why);
  REQUIRE(outcome.how == actors::Outcome::How::done);
  return trained;
}

}  // namespace troupe::simulation
