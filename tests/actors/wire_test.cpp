#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "actors/exchange.h"
#include "actors/nodes/wire_message.h"
#include "catch.h"
#include "little_run.h"
#include "wires.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

struct Told {
  Digest weights;
  BytesSent exchanged;
  std::int64_t skipped_steps = 0;
};

Told play_over_wires(const Piece& piece, int nodes) {
  MemoryPool memory;
  LittleRun run(piece);
  Scene scene(run, 7);
  Wires wires(nodes, memory);
  scene.spec().player_host = &wires;
  scene.begin();
  const auto played = scene.finish();
  INFO(played.outcome.why);
  REQUIRE(played.outcome.how == Outcome::How::done);
  CHECK(played.bytes_left == 0);
  CHECK(memory.counters().bytes_in_use == 0);
  return {played.weights, wires.exchanged(), played.outcome.skipped_steps};
}

Piece piece_of(const std::string& model, int stages, int replicas, Exchange exchange) {
  RoundShape shape;
  shape.schedule = "1f1b";
  shape.stages = stages;
  shape.replicas = replicas;
  shape.micro_batches = shape.groups = 8;
  Piece piece = Piece::of(model, shape);
  piece.exchange = exchange;
  return piece;
}

/// Returns the traffic of one additional step.
BytesSent in_a_step(Piece piece, int nodes) {
  piece.steps = 3;
  auto more = play_over_wires(piece, nodes).exchanged;
  piece.steps = 2;
  for (const auto& [process, bytes] : play_over_wires(piece, nodes).exchanged)
    more[process] -= bytes;
  return more;
}

}  // namespace

TEST_CASE("a run over the wire has the bits of a plain loop with every exchange", "[actors]") {
  for (const std::string model : {"wide", "gpt2", "resnet", "unet", "pair", "t5"}) {
    const auto wanted = LittleRun(piece_of(model, 1, 1, Exchange::server)).plainly();
    for (const auto exchange : {Exchange::all_to_all, Exchange::server})
      for (const int stages : {1, 2})
        for (const int replicas : {2, 4})
          for (const int nodes : {2, 3, stages * replicas}) {
            const bool is_server = exchange == Exchange::server;
            CAPTURE(model, stages, replicas, nodes, is_server);
            CHECK(play_over_wires(piece_of(model, stages, replicas, exchange), nodes).weights ==
                  wanted);
          }
  }
}

TEST_CASE("an fp16 run over the wire skips steps and has the bits of a plain loop", "[actors]") {
  constexpr int steps = 12;
  const auto one = piece_of("gpt2", 1, 1, Exchange::server).in_fp16(steps);
  const auto wanted = LittleRun(one).plainly();
  const auto skipped_steps = play(one, 7).outcome.skipped_steps;
  CHECK(skipped_steps > 0);
  CHECK(skipped_steps < steps);
  for (const auto exchange : {Exchange::all_to_all, Exchange::server})
    for (const int nodes : {2, 4}) {
      CAPTURE(nodes);
      const auto told = play_over_wires(piece_of("gpt2", 2, 2, exchange).in_fp16(steps), nodes);
      CHECK(told.weights == wanted);
      CHECK(told.skipped_steps == skipped_steps);
    }
}

TEST_CASE("all-to-all and server exchanges send the bytes of their formulas", "[actors]") {
  constexpr int replicas = 4;
  const auto piece = piece_of("wide", 1, replicas, Exchange::all_to_all);
  LittleRun run(piece);
  Scene scene(run, 1);
  std::vector<std::size_t> sections;
  std::size_t all = 0;
  for (const auto& section : scene.spec().sections[0]) {
    std::size_t bytes = 0;
    for (const auto& part : section.pieces)
      bytes += sizeof(float) * static_cast<std::size_t>(part.count);
    sections.push_back(bytes);
    all += bytes;
  }
  CHECK(all == 92'703 * sizeof(float));

  // Each replica sends gradients for the sections of the others, and the weights of its own section
  // to each of them.
  const auto shared = in_a_step(piece, replicas);
  std::size_t sum = 0;
  for (int k = 0; k < replicas; ++k) {
    const auto own = sections[static_cast<std::size_t>(k)];
    CHECK(shared.at(k) == (all - own) + (replicas - 1) * own);
    sum += shared.at(k);
  }
  CHECK(sum == 2 * (replicas - 1) * all);

  const auto served = in_a_step(piece_of("wide", 1, replicas, Exchange::server), replicas);
  CHECK(served.at(0) == (replicas - 1) * all);
  for (int k = 1; k < replicas; ++k) CHECK(served.at(k) == all);
}

namespace {

/// A run with a tied parameter and buffers or not, over wires, in which one process lies. Its end:
/// a peer's lie costs attempts, and ends the run with the reason if it comes again and again.
Played play_with_liar(const Piece& piece, Lie lie) {
  MemoryPool memory;
  LittleRun run(piece);
  Scene scene(run, 7);
  Wires wires(4, memory, std::move(lie));
  scene.spec().player_host = &wires;
  scene.begin();
  auto played = scene.finish();
  CHECK(played.ended);
  CHECK(played.bytes_left == 0);
  CHECK(memory.counters().bytes_in_use == 0);
  return played;
}

Tensor other_shape(const Tensor& tensor, MemoryPool& memory) {
  Shape shape{tensor.count() + 1};
  Tensor other = Tensor::make(memory, shape, tensor.dtype());
  std::ranges::fill(other.host_bytes(), std::byte{0});
  return other;
}

/// Gives numbers in the body of a message, the parts of a list too, other values.
void change_numbers(Value& value, std::mt19937_64& random) {
  const auto one_in = [&](int count) {
    return std::uniform_int_distribution<int>(1, count)(random) == 1;
  };
  if (const auto* map = value.map()) {
    for (const auto& entry : Value::Map(*map)) {
      Value changed = entry.value;
      change_numbers(changed, random);
      value.set(entry.key, std::move(changed));
    }
  } else if (const auto* list = value.list()) {
    Value::List changed = *list;
    for (auto& entry : changed) change_numbers(entry, random);
    value = std::move(changed);
  } else if (const auto number = value.integer(); number && one_in(3)) {
    const std::int64_t wild[] = {0, 1, -1, 2, *number + 1, *number - 1, 1 << 20};
    value = wild[std::uniform_int_distribution<std::size_t>(0, std::size(wild) - 1)(random)];
  }
}

}  // namespace

TEST_CASE("a run fails with the reason if a peer sends tensors of the wrong form", "[actors]") {
  MemoryPool memory;
  for (const std::string model : {"gpt2", "resnet", "braid", "pair"})
    for (const std::string type :
         {"activation", "gradient", "loan_for", "step_gradients", "new_weights", "norms"}) {
      if (type == "loan_for" && model != "gpt2") continue;
      CAPTURE(model, type);
      const auto played = play_with_liar(
          piece_of(model, 2, 2, Exchange::all_to_all), [&](int, WireMessage& wire_message) {
            if (wire_message.type != type) return;
            if (wire_message.tensors.empty())
              wire_message.bytes += wire_message.bytes;
            else
              wire_message.tensors.back() = other_shape(wire_message.tensors.back(), memory);
          });
      CHECK(played.outcome.how == Outcome::How::failed);
      INFO(played.outcome.why);
      CHECK(played.outcome.why.find(type + ": found ") != std::string::npos);
    }
}

TEST_CASE("a run fails with the reason if a peer leaves out a kept value", "[actors]") {
  for (const std::string type : {"activation", "gradient"})
    for (const bool is_twice : {false, true}) {
      CAPTURE(type, is_twice);
      const auto played = play_with_liar(
          piece_of("braid", 2, 2, Exchange::all_to_all), [&](int, WireMessage& wire_message) {
            if (wire_message.type != type) return;
            if (is_twice)
              wire_message.tensors.push_back(wire_message.tensors.back());
            else
              wire_message.tensors.pop_back();
          });
      CHECK(played.outcome.how == Outcome::How::failed);
      INFO(played.outcome.why);
      CHECK(played.outcome.why.find(type + ": found ") != std::string::npos);
    }
}

TEST_CASE("a run fails if a peer sends good tensors at the wrong time", "[actors]") {
  const auto with = [](const std::string& type, const std::function<void(WireMessage&)>& change) {
    const auto played = play_with_liar(piece_of("mlp", 2, 2, Exchange::all_to_all),
                                       [&, sent = 0](int, WireMessage& wire_message) mutable {
                                         if (wire_message.type == type && ++sent % 5 == 0)
                                           change(wire_message);
                                       });
    CHECK(played.outcome.how == Outcome::How::failed);
    return played.outcome.why;
  };
  CHECK(with("new_weights", [](WireMessage& it) { it.body.set("version", 7); }).find("version 7") !=
        std::string::npos);
  CHECK(with("step_gradients", [](WireMessage& it) {
          it.body.set("first_groups", Value::List{3});
        }).find("group") != std::string::npos);
  CHECK(with("step_gradients", [](WireMessage& it) {
          it.body.set("rate_share", 0.5);
        }).find("another length") != std::string::npos);
  CHECK(with("step_gradients", [](WireMessage& it) { it.body.set("step", 0); }).find("twice") !=
        std::string::npos);
  CHECK(with("norms", [](WireMessage& it) {
          const double huge = 1e308;
          for (std::size_t at = 0; at < it.bytes.size(); at += sizeof huge)
            std::memcpy(it.bytes.data() + at, &huge, sizeof huge);
        }).find("norm") != std::string::npos);
}

TEST_CASE("a run ends with a reason even if a peer sends corrupt messages", "[actors]") {
  MemoryPool memory;
  int failed = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const auto draw = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
    const std::string models[] = {"gpt2", "resnet", "mlp"};
    auto piece = piece_of(models[seed % 3], 2, 2, Exchange::all_to_all);
    if (seed % 5 == 0) {
      piece.shape.schedule = "pipedream";
      piece.shape.replicas = 1;
      piece.staleness.gap_penalty = models::StalenessOptions::GapPenalty::elementwise;
    }
    const int when = 1 + draw(60), liar = draw(1);
    const auto played =
        play_with_liar(piece, [&, sent = 0](int from, WireMessage& wire_message) mutable {
          if (from != liar || ++sent < when) return;
          if (draw(1) == 0) change_numbers(wire_message.body, random);
          if (wire_message.tensors.empty()) return;
          auto& tensor = wire_message.tensors[static_cast<std::size_t>(
              draw(static_cast<int>(wire_message.tensors.size()) - 1))];
          switch (draw(3)) {
            case 0:
              tensor = other_shape(tensor, memory);
              break;
            case 1:
              if (bytes_of(tensor.dtype()) == 4) {
                tensor = Tensor::over(tensor.holding(), 0, Shape{tensor.count()}, DType::i32);
              }
              break;
            case 2:
              wire_message.tensors.pop_back();
              break;
            default:
              break;
          }
        });
    if (played.outcome.how == Outcome::How::failed) {
      ++failed;
      CHECK_FALSE(played.outcome.why.empty());
    }
  }
  CHECK(failed > 50);
}
