// Runs of actors on devices whose queues are slow, in random orders, fail, or hang.

#include <algorithm>
#include <cstdlib>
#include <string>

#include "devices_run.h"
#include "kernels/cuda/device.h"
#include "schedules/generators/registry.h"
#include "tests/catch.h"
#include "tests/cuda_on_cores/queue.h"

namespace troupe::actors {
namespace {

// Long, since slow is not failed, however slow the machine is.
constexpr auto patient = std::chrono::minutes(10);

/// Returns queues that are always late, that follow at a moderate pace, or that are done at the
/// first query.
cuda_on_cores::Temper drawn(std::uint32_t seed) {
  constexpr unsigned paces[] = {1, 4, 200};
  return {.seed = seed, .most_at_a_look = paces[seed % 3], .fails_after = {}, .stops_after = {}};
}

TEST_CASE("every schedule gives the same bits on arbitrarily slow devices") {
  std::uint32_t seed = 0;
  for (const auto& schedule : schedules::named_schedules())
    for (const int chunks : {1, 2}) {
      RoundShape shape;
      shape.schedule = schedule.name;
      shape.stages = 2 * chunks;
      shape.chunks = chunks;
      shape.micro_batches = shape.groups = 4;
      if (schedule.mode == schedules::Mode::asynchronous) shape.flush_steps = 3;
      if (!Rounds::make(shape)) continue;
      const auto piece = Piece::of("mlp", shape);
      cuda_on_cores::set_temper(drawn(++seed));
      CAPTURE(schedule.name, chunks, seed);
      const auto played = play_on_devices(piece, {.ahead = 1 + seed % 3, .patience = patient});
      INFO(played.why);
      CHECK(played.how == Outcome::How::done);
      const bool late = schedule.mode == schedules::Mode::asynchronous;
      CHECK(played.weights == (late ? play_on_cores(piece).weights : LittleRun(piece).plainly()));
    }
  CHECK(seed >= 10);
}

TEST_CASE("runs play graphs with the same bits on arbitrarily slow devices") {
  std::uint32_t seed = 0;
  for (const char* schedule : {"1f1b", "zb-h1", "pipedream"}) {
    RoundShape shape{.schedule = schedule, .stages = 2, .micro_batches = 2, .groups = 2};
    const bool late = shape.schedule == "pipedream";
    if (late) shape.flush_steps = 4;
    auto piece = Piece::of("gpt2", shape);
    piece.steps = 12;
    if (late) piece.staleness.predict = models::StalenessOptions::Predict::msnag;
    cuda_on_cores::set_temper(drawn(++seed));
    const auto played = cuda_on_cores::recordings_played();
    const auto spoilt = cuda_on_cores::recordings_spoilt();
    const auto run = play_on_devices(piece, {.ahead = 2, .patience = patient});
    CAPTURE(schedule, run.why);
    CHECK(run.weights == (late ? play_on_cores(piece).weights : LittleRun(piece).plainly()));
    // How often addresses repeat depends on the queues' timing.
    CHECK(cuda_on_cores::recordings_played() > played);
    CHECK(cuda_on_cores::recordings_spoilt() == spoilt);
  }
}

TEST_CASE("a device waits for another stage's device without the host") {
  cuda_on_cores::set_temper(drawn(3));
  const auto before = cuda_on_cores::waits_put();
  // Tied weights: loans cross devices too.
  auto piece =
      Piece::of("gpt2", {.schedule = "1f1b", .stages = 2, .micro_batches = 4, .groups = 4});
  piece.steps = 6;
  CHECK(play_on_devices(piece).weights == LittleRun(piece).plainly());
  // Some marks have passed by the time that the other device would wait.
  CHECK(cuda_on_cores::waits_put() > before);
}

TEST_CASE("a run ends with the reason if a device fails within its queue") {
  const auto after = GENERATE(1, 40, 120);
  cuda_on_cores::set_temper(
      {.seed = 1, .most_at_a_look = 3, .fails_after = after, .stops_after = {}});
  const auto played = play_on_devices(Piece::of("mlp", {.schedule = "1f1b", .stages = 2}));
  CAPTURE(after, played.why);
  CHECK(played.how == Outcome::How::failed);
  CHECK(played.why.find("CUDA: a kernel went wrong") != std::string::npos);
  CHECK_FALSE(played.faults.empty());
  for (const auto& fault : played.faults) CHECK(fault == "CUDA: a kernel went wrong");
  cuda_on_cores::set_temper({});
}

TEST_CASE("a run ends with the reason if a device hangs") {
  const auto after = GENERATE(1, 40, 120);
  cuda_on_cores::set_temper(
      {.seed = 1, .most_at_a_look = 3, .fails_after = {}, .stops_after = after});
  const auto played = play_on_devices(Piece::of("mlp", {.schedule = "1f1b", .stages = 2}),
                                      {.ahead = 2, .patience = std::chrono::milliseconds(200)},
                                      cuda_on_cores::let_all_fail);
  CAPTURE(after, played.why);
  CHECK(played.how == Outcome::How::failed);
  // A job that waits for the device cannot report it; then the supervisor reports who computes.
  const bool told = played.why.find("the device has done nothing") != std::string::npos ||
                    played.why.find("it still computes") != std::string::npos;
  CHECK(told);
  cuda_on_cores::set_temper({});
}

TEST_CASE("a run on devices makes a bounded number of events and allocations") {
  cuda_on_cores::set_temper(drawn(1));
  auto piece = Piece::of("mlp", {.schedule = "1f1b", .stages = 2, .micro_batches = 4, .groups = 4});
  piece.steps = 40;
  const auto before = cuda_on_cores::events_made();
  const auto played = play_on_devices(piece);
  REQUIRE(played.how == Outcome::How::done);
  REQUIRE(played.allocations.size() == 40);
  // Two devices and a reader. Each has two jobs ahead, and a job has two marks if it follows
  // another device.
  CHECK(cuda_on_cores::events_made() - before <= 3 * 2 * 2);
  CAPTURE(played.allocations);
  // A pool grows to its peak, which may come late.
  CHECK(played.allocations[39] <= played.allocations[9] * 5 / 4);
}

TEST_CASE("a GPU has at most as many queues as connections, with those that record graphs") {
  REQUIRE(::unsetenv("CUDA_DEVICE_MAX_CONNECTIONS") == 0);
  CHECK(kernels::cuda::check_queues(4));
  CHECK_FALSE(kernels::cuda::check_queues(5));
  kernels::cuda::prepare_process();
  CHECK(kernels::cuda::check_queues(16));
  CHECK(kernels::cuda::free_queues(3) == 26);
  const auto refused = kernels::cuda::check_queues(17);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text ==
        "found 34 queues for each GPU, wanted at most 32 (CUDA_DEVICE_MAX_CONNECTIONS); use more "
        "GPUs or fewer devices");
}

TEST_CASE("profilers see which action each computation belongs to") {
  cuda_on_cores::set_temper({});
  (void)cuda_on_cores::take_ranges();
  REQUIRE(play_on_devices(Piece::of("mlp", {.schedule = "1f1b", .stages = 2})).how ==
          Outcome::How::done);
  const auto ranges = cuda_on_cores::take_ranges();
  for (const char* name : {"step 1, 0F0", "step 1, 1B0", "step 3, 0B0"})
    CHECK(std::ranges::count(ranges, name) == 1);
  CHECK(cuda_on_cores::open_ranges() == 0);
}

}  // namespace
}  // namespace troupe::actors
