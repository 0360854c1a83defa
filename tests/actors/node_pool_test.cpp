#include "actors/nodes/node_pool.h"

#include <chrono>
#include <cstdint>

#include "catch.h"

using namespace troupe;
using namespace troupe::actors;
using namespace std::chrono_literals;

TEST_CASE("readings of GPUs expire after a while", "[actors]") {
  NodePool pool([](std::uint64_t, const transport::Message&) -> Status { return Done{}; });
  const Time start{};
  pool.add(7, "alpha", {});
  CHECK(pool.find(7)->gpus_at(start).empty());
  GpuReading gpu;
  gpu.number = 1;
  pool.set_gpus(7, {gpu}, start + 20s);
  pool.set_gpus(8, {gpu, gpu}, start + 20s);  // No node has this incarnation.
  CHECK(pool.find(7)->gpus_at(start + 29s).size() == 1);
  CHECK(pool.find(7)->gpus_at(start + 30s).empty());
}

TEST_CASE("a pool finds each of its nodes, in the order in which they joined", "[actors]") {
  NodePool pool([](std::uint64_t, const transport::Message&) -> Status { return Done{}; });
  constexpr std::uint64_t count = 4096;
  // Incarnations fall, so that their order is not that of joining.
  for (auto life = count; life > 0; --life) pool.add(life, life % 2 == 0 ? "even" : "", {});
  CHECK(pool.find(count)->name == "even");
  CHECK(pool.find(count - 2)->name == "even-2");
  CHECK(pool.all().front().incarnation == count);
  CHECK(pool.all().back().incarnation == 1);
  CHECK(pool.count_usable() == count);
  CHECK(pool.cordon("even", true));
  pool.set_away(1, true);
  CHECK(pool.count_usable() == count - 2);
  CHECK(pool.usable().size() == count - 2);
  CHECK(pool.usable(kernels::Precision::bf16_pairs).empty());
  // A name is free again once its node is gone.
  CHECK(pool.remove(count)->name == "even");
  CHECK_FALSE(pool.remove(count));
  CHECK_FALSE(pool.cordon("even", true));
  CHECK(pool.add(count + 1, "even", {}).name == "even");
  CHECK(pool.all().back().incarnation == count + 1);
}

TEST_CASE("a value that a GPU does not report is absent after encoding and decoding", "[actors]") {
  GpuReading gpu;
  gpu.number = 3;
  gpu.busy = 0;
  auto message = transport::to_message(GpuReadings{{gpu}});
  const auto& body = message.body.find("gpus")->list()->front();
  CHECK(body.map()->size() == 2);
  const auto read = transport::from_message<GpuReadings>(message);
  REQUIRE(read);
  CHECK(read->gpus[0].busy == 0.0);
  CHECK_FALSE(read->gpus[0].watts);
  CHECK_FALSE(read->gpus[0].slowed_by);
  // Unknown fields of a newer version are ignored.
  message.body.find("gpus")->list()->front().set("fans", 2);
  CHECK(transport::from_message<GpuReadings>(message).ok());
}
