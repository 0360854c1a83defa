// A node that has a part in a run, and says what no honest one says: by real channels, to real
// nodes and to a real head.

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>

#include "actors/nodes/wire_message.h"
#include "catch.h"
#include "little_cluster.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

/// Once, what a unit gives has one row too many.
LayerFault::At one_row_more_once() {
  return [done = std::make_shared<std::atomic<bool>>(false)](const models::Pass& pass,
                                                             Tensor& tensor) {
    if (pass.key.step != 1 || done->exchange(true)) return;
    Shape shape{tensor.shape()[0] + 1};
    for (int i = 1; i < tensor.shape().rank(); ++i) shape.append(tensor.shape()[i]);
    tensor = pass.stream.make(shape, tensor.dtype());
    std::ranges::fill(tensor.host_bytes(), std::byte{0});
  };
}

/// The warnings of a run that is played to its end all the same, by channels without links.
std::string warned(const Piece& piece, Carriers carriers) {
  LittleCluster cluster(piece, {.nodes = 2, .without_links = 0, .carriers = carriers});
  const auto played = cluster.play();
  INFO(played.outcome.why);
  CHECK(played.outcome.how == Outcome::How::done);
  CHECK(played.weights == bits_of_plain_loop(piece));
  CHECK(played.bytes_left == 0);
  return played.told("warn");
}

}  // namespace

TEST_CASE("a tensor of the wrong shape ends the attempt with the node's name", "[actors]") {
  for (const auto carriers : {Carriers::tcp, Carriers::shm_and_tcp}) {
    auto piece = linked_piece("mlp", "1f1b", 2);
    piece.layer_fault = {.unit = 3, .forward = one_row_more_once(), .backward = {}};
    const auto forward = warned(piece, carriers);
    INFO(forward);
    CHECK(forward.find("node 0 of attempt 1: activation: found the input of stage 1 as f32 [3, 5], "
                       "wanted f32 [2, 5]") != std::string::npos);

    piece.layer_fault = {.unit = 4, .forward = {}, .backward = one_row_more_once()};
    const auto backward = warned(piece, carriers);
    INFO(backward);
    CHECK(backward.find("node 1 of attempt 1: gradient: found the gradient of the output of stage "
                        "0 as f32 [3, 5], wanted f32 [2, 5]") != std::string::npos);
  }
}

TEST_CASE("a run survives a node's message to a player that is not at the head", "[actors]") {
  auto piece = linked_piece("mlp", "1f1b", 2);
  LittleCluster* here = nullptr;
  piece.layer_fault = {.unit = 0,
                       .forward =
                           [&, said = std::make_shared<std::atomic<bool>>(false)](
                               const models::Pass& pass, Tensor&) {
                             if (pass.key.step != 1 || said->exchange(true)) return;
                             MemoryPool memory;
                             here->say(0, as_message({PlayerId::Kind::inputs, 0},
                                                     to_wire_message(Taken{0}, memory)));
                           },
                       .backward = {}};
  LittleCluster cluster(piece, {.nodes = 2});
  here = &cluster;
  const auto played = cluster.play();
  INFO(played.outcome.why);
  INFO(played.told("warn"));
  CHECK(played.outcome.how == Outcome::How::done);
  CHECK(played.weights == bits_of_plain_loop(piece));
  CHECK(played.told("warn").find("taken: found it addressed to a player that is not here") !=
        std::string::npos);
}
