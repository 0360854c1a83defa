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

/// How long a run on the cores may make no progress.
constexpr auto patience_on_cores = std::chrono::milliseconds(is_sanitized ? 5000 : 500);

DevicesRun play(const Piece& piece, std::chrono::milliseconds patience, const Make& make,
                const std::function<void()>& ended) {
  LittleRun run(piece);
  std::vector<std::unique_ptr<Executor>> executors;
  const auto spec = run.spec([&]() -> Executor& { return *executors.emplace_back(make()); });
  spec->stall_patience = patience;
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
    else  // A failed device may still be copying from and to host memory.
      CHECK(executor->host_memory().counters().bytes_in_use == 0);
  }
  return played;
}

}  // namespace

DevicesRun play_on_cores(const Piece& piece) {
  return play(piece, patience_on_cores, [] { return std::make_unique<ComputingThread>(1); }, {});
}

DevicesRun play_on_devices(const Piece& piece, DeviceLimits limits,
                           const std::function<void()>& ended) {
  const auto devices = std::make_shared<DeviceProgress>();
  return play(
      piece, device_patience(),
      [&] {
        return std::make_unique<DeviceThread>(kernels::open_device(), kernels::device_memory(),
                                              devices, limits);
      },
      ended);
}

}  // namespace troupe::actors
