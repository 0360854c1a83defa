#include "tests/sim/reference.h"

#include <mutex>
#include <utility>

#include "actors/executors.h"
#include "apps/run/run_session.h"
#include "apps/run/run_setup.h"
#include "catch.h"
#include "config/load.h"
#include "core/threads/event_fd.h"
#include "core/threads/real_env.h"
#include "storage/files/memory_files.h"
#include "tests/sim/data.h"

namespace troupe::simulation {
TrainedSteps really_trained(const Value& config) {
  RealEnv env;
  EventFd bell;
  storage::MemoryFiles files;
  write_data(files, DataThere::whole);
  actors::RealExecutors executors;
  apps::HostFacts host;
  host.host = "real";
  Value alone = config;
  // An asynchronous run has the weights of its own pipeline.
  if (!config.find("staleness")) alone.set("pipeline", Value::Map{{"stages", 1, {}}});
  alone.set("elastic", Value::Map{{"copies", 1, {}}});
  alone.set("checkpoint", Value::Map{{"every", "1 steps", {}}});
  auto loaded = config::load_message(alone, "test");
  INFO((loaded ? "" : loaded.error().text));
  REQUIRE(loaded);
  auto setup = apps::set_up(files, loaded->config);
  INFO((setup ? "" : setup.error().text));
  REQUIRE(setup);
  apps::RunSession session({env, host, files, files}, std::move(*loaded), apps::RunStart::anew,
                           [](const std::string&) {});
  actors::caf_shim::RealSystem system;
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
      nullptr, [] {});
  INFO(outcome.why);
  REQUIRE(outcome.how == actors::Outcome::How::done);
  return trained;
}

}  // namespace troupe::simulation
