#include "actors/nodes/node_pool.h"

#include <chrono>

#include "catch.h"

using namespace troupe;
using namespace troupe::actors;
using namespace std::chrono_literals;

TEST_CASE("what a node told of its GPUs long ago says nothing of them now", "[actors]") {
  NodePool pool([](std::uint64_t, const transport::Message&) -> Status { return Done{}; });
  const Time start{};
  pool.add(7, "alpha", {});
  CHECK(pool.find(7)->gpus_at(start).empty());
  GpuReading gpu;
  gpu.number = 1;
  pool.set_gpus(7, {gpu}, start + 20s);
  pool.set_gpus(8, {gpu, gpu}, start + 20s);  // Of nobody who is there.
  CHECK(pool.find(7)->gpus_at(start + 29s).size() == 1);
  CHECK(pool.find(7)->gpus_at(start + 30s).empty());
}

TEST_CASE("what a GPU does not tell is absent on the wire, and stays so", "[actors]") {
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
  // One who knows more says more.
  message.body.find("gpus")->list()->front().set("fans", 2);
  CHECK(transport::from_message<GpuReadings>(message).ok());
}
