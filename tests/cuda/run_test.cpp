// Runs of actors whose executors give their work to devices, on threads of their own.

#include <caf/all.hpp>
#include <future>
#include <memory>
#include <vector>

#include "actors/rt.h"
#include "actors/supervisor.h"
#include "little_run.h"
#include "same.h"

namespace troupe::actors {
namespace {

enum class On { cores, devices };

Digest weights_of(const Piece& piece, On on) {
  LittleRun run(piece);
  std::vector<std::unique_ptr<Executor>> executors;
  const auto spec = run.spec([&]() -> Executor& {
    if (on == On::cores) return *executors.emplace_back(std::make_unique<ComputingThread>(1));
    return *executors.emplace_back(
        std::make_unique<ComputingThread>(kernels::open_device(), kernels::device_memory()));
  });
  std::promise<Outcome> ended;
  rt::Config config(2);
  Digest weights;
  {
    caf::actor_system system(config);
    const auto supervisor = spawn_supervisor(
        system, spec, {}, [&](Outcome outcome) { ended.set_value(std::move(outcome)); });
    auto outcome = ended.get_future().get();
    INFO(outcome.why);
    CHECK(outcome.how == Outcome::How::done);
    weights = digest_of_weights(std::move(outcome.weights));
  }
  std::vector<Executor*> all;
  for (const auto& executor : executors) all.push_back(executor.get());
  finish(all);
  for (const auto& executor : executors) {
    CHECK(executor->memory().counters().bytes_in_use == 0);
    CHECK(executor->host_memory().counters().bytes_in_use == 0);
  }
  return weights;
}

TEST_CASE("a run on devices has the bits of a plain loop on the cores") {
  if (!kernels::open_device()) return;
  for (const auto& [model, schedule] :
       {std::pair("gpt2", "1f1b"), std::pair("llama", "zb-h1"), std::pair("resnet", "gpipe")}) {
    CAPTURE(model, schedule);
    auto piece =
        Piece::of(model, {.schedule = schedule, .stages = 2, .micro_batches = 4, .groups = 2});
    piece.save_every = 2;
    CHECK(weights_of(piece, On::devices) == LittleRun(piece).plainly());
  }
}

TEST_CASE("an asynchronous run has the same bits on devices and on the cores") {
  if (!kernels::open_device()) return;
  auto piece = Piece::of("gpt2", {.schedule = "pipedream", .stages = 2, .micro_batches = 2});
  piece.staleness.predict = models::StalenessOptions::Predict::msnag;
  piece.staleness.linearize_at = models::StalenessOptions::LinearizeAt::forward;
  piece.staleness.gap_penalty = models::StalenessOptions::GapPenalty::elementwise;
  piece.steps = 6;
  CHECK(weights_of(piece, On::devices) == weights_of(piece, On::cores));
}

}  // namespace
}  // namespace troupe::actors
