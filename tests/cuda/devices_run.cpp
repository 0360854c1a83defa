#include "devices_run.h"

#include <caf/all.hpp>
#include <future>
#include <utility>

#include "actors/caf_shim.h"
#include "same.h"
#include "sanitized.h"

namespace troupe::actors {
namespace {

using Make = std::function<std::unique_ptr<Executor>()>;

DevicesRun play(const Piece& piece, const Make& make, const std::function<void()>& ended) {
  LittleRun run(piece);
  std::vector<std::unique_ptr<Executor>> executors;
  const auto spec = run.spec([&]() -> Executor& { return *executors.emplace_back(make()); });
  // One that hangs is noticed soon.
  spec->stall_patience = std::chrono::milliseconds(is_sanitized ? 5000 : 500);
  DevicesRun played;
  spec->record = [&, record = spec->record](const Value& event) {
    record(event);
    if (*event.find("type")->text() != "step") return;
    played.allocations.push_back(0);
    played.reserved = 0;
    for (const auto& executor : executors) {
      const auto counters = executor->memory().counters();
      played.allocations.back() += counters.allocations;
      played.reserved += counters.bytes_reserved;
    }
  };
  std::promise<Outcome> end;
  caf_shim::Config config(2);
  {
    caf::actor_system system(config);
    const auto supervisor = spawn_supervisor(
        system, spec, {}, [&](Outcome outcome) { end.set_value(std::move(outcome)); });
    auto outcome = end.get_future().get();
    played.how = outcome.how;
    played.why = outcome.why;
    if (outcome.how == Outcome::How::done)
      played.weights = digest_of_weights(std::move(outcome.weights));
    if (ended) ended();
  }
  std::vector<Executor*> all;
  all.reserve(executors.size());
  for (const auto& executor : executors) all.push_back(executor.get());
  finish(all);
  for (const auto& executor : executors) {
    CHECK(executor->memory().counters().bytes_in_use == 0);
    if (auto fault = executor->fault())
      played.faults.push_back(*fault);
    else  // One that has failed may copy from there yet, and to there.
      CHECK(executor->host_memory().counters().bytes_in_use == 0);
  }
  return played;
}

}  // namespace

DevicesRun play_on_cores(const Piece& piece) {
  return play(piece, [] { return std::make_unique<ComputingThread>(1); }, {});
}

DevicesRun play_on_devices(const Piece& piece, DeviceLimits limits,
                           const std::function<void()>& ended) {
  const auto devices = std::make_shared<DeviceProgress>();
  return play(
      piece,
      [&] {
        return std::make_unique<DeviceThread>(kernels::open_device(), kernels::device_memory(),
                                              devices, limits);
      },
      ended);
}

}  // namespace troupe::actors
