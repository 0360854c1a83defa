// Runs of actors whose executors give work to devices on their own threads.

#include <utility>

#include "devices_run.h"
#include "same.h"

namespace troupe::actors {
namespace {

TEST_CASE("a run on devices has the bits of a plain loop on the cores") {
  if (!kernels::open_device()) return;
  for (const auto& [model, schedule] :
       {std::pair("gpt2", "1f1b"), std::pair("llama", "zb-h1"), std::pair("resnet", "gpipe")}) {
    CAPTURE(model, schedule);
    auto piece =
        Piece::of(model, {.schedule = schedule, .stages = 2, .micro_batches = 4, .groups = 2});
    piece.save_every = 2;
    const auto played = play_on_devices(piece);
    INFO(played.why);
    CHECK(played.weights == LittleRun(piece).plainly());
  }
}

TEST_CASE("an asynchronous run has the same bits on devices and on the cores") {
  if (!kernels::open_device()) return;
  auto piece = Piece::of("gpt2", {.schedule = "pipedream", .stages = 2, .micro_batches = 2});
  piece.staleness.predict = models::StalenessOptions::Predict::msnag;
  piece.staleness.linearize_at = models::StalenessOptions::LinearizeAt::forward;
  piece.staleness.gap_penalty = models::StalenessOptions::GapPenalty::elementwise;
  piece.steps = 6;
  CHECK(play_on_devices(piece).weights == play_on_cores(piece).weights);
}

TEST_CASE("a run on tensor cores gives the same bits with every plan") {
  if (!kernels::open_tensor_cores()) return;
  using kernels::Precision;
  const auto precision = GENERATE(Precision::tf32, Precision::fp16_gpu, Precision::bf16_gpu);
  CAPTURE(to_string(precision));
  const auto weights = [&](const RoundShape& shape) {
    auto piece = Piece::of("gpt2", shape);
    // In fp16 all replicas skip some steps.
    if (kernels::is_fp16(precision)) piece = piece.in_fp16(10);
    piece.precision = precision;
    return play_on_devices(piece).weights;
  };
  const RoundShape whole{.schedule = "gpipe", .stages = 1, .micro_batches = 4, .groups = 2};
  const auto wanted = weights(whole);
  CHECK(weights(whole) == wanted);
  CHECK(weights({.schedule = "zb-h1", .stages = 2, .micro_batches = 4, .groups = 2}) == wanted);
  CHECK(wanted != play_on_devices(Piece::of("gpt2", whole)).weights);
}

}  // namespace
}  // namespace troupe::actors
