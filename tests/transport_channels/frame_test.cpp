#include "transport/channels/frame.h"

#include <cstring>
#include <span>

#include "catch.h"
#include "transport/channels/running_checksum.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

constexpr Expected expected{7, 3, {1'000, 4}};

/// The header and the remaining front of a parcel with one tensor, as a valid sender writes them.
struct Front {
  Front() {
    const Tensor tensor = Tensor::make(pool, {5, 10}, DType::f32);
    const std::byte head[3] = {};
    std::vector<std::byte> bytes;
    write_front(head, {&tensor, 1}, bytes);
    number_front(bytes, 7, 3, Checksums::on);
    std::memcpy(&header, bytes.data(), sizeof header);
    rest.assign(bytes.begin() + sizeof header, bytes.end());
    std::memcpy(&record, rest.data() + 3, sizeof record);
  }
  Status check_record() {
    std::memcpy(rest.data() + 3, &record, sizeof record);
    return check_records(header, rest, plans);
  }

  MemoryPool pool;
  FrameHeader header;
  TensorRecord record;
  std::vector<std::byte> rest;
  std::vector<TensorPlan> plans;
};

}  // namespace

TEST_CASE("a valid frame front passes all checks", "[transport]") {
  Front front;
  const auto bytes = check_header(front.header, expected);
  REQUIRE(bytes.ok());
  CHECK(*bytes == 3 + sizeof(TensorRecord));
  CHECK(check_front_checksum(front.header, front.rest).ok());
  REQUIRE(front.check_record().ok());
  REQUIRE(front.plans.size() == 1);
  CHECK(front.plans[0].shape == Shape{5, 10});
  CHECK(front.plans[0].bytes == 200);
  CHECK(front.header.payload_bytes == 256);
}

TEST_CASE("an invalid header is refused", "[transport]") {
  Front front;
  auto& header = front.header;
  SECTION("magic") { header.magic = 0x20544547; }
  SECTION("kind") { header.kind = static_cast<FrameKind>(9); }
  SECTION("epoch") { header.epoch = 6; }
  SECTION("a number that was") { header.sequence = 2; }
  SECTION("a number to come") { header.sequence = 4; }
  SECTION("head") { header.head_bytes = most_head_bytes + 1; }
  SECTION("count") { header.tensors = most_tensors + 1; }
  SECTION("payload") { header.payload_bytes = 1'000 + 65; }
  SECTION("endless payload") { header.payload_bytes = ~std::uint64_t{0}; }
  CHECK(!check_header(header, expected).ok());
}

TEST_CASE("an invalid record is refused", "[transport]") {
  Front front;
  auto& record = front.record;
  SECTION("type") { record.type = 8; }
  SECTION("rank") { record.rank = 9; }
  SECTION("other bytes than the shape's") { record.bytes = 204; }
  SECTION("other shape") { record.sizes[0] = 6; }
  SECTION("a negative size") { record.sizes = {-5, -10}; }
  SECTION("a size beyond the rank") { record.sizes[2] = 1; }
  SECTION("a product that overflows to the right number") {
    record.rank = 3;
    record.sizes = {std::int64_t{1} << 32, std::int64_t{1} << 32, 0};
    record.bytes = 0;
  }
  SECTION("less than the payload") {
    record.sizes = {1, 10};
    record.bytes = 40;
  }
  SECTION("more than the payload") {
    record.sizes = {100, 10};
    record.bytes = 4'000;
  }
  CHECK(!front.check_record().ok());
}

namespace {

/// Changes each bit of `bytes` in turn and changes it back. Returns how many changes `is_noticed`
/// does not notice.
template <class IsNoticed>
std::size_t unnoticed_changes(std::span<std::byte> bytes, IsNoticed is_noticed) {
  std::size_t unnoticed = 0;
  for (auto& byte : bytes)
    for (unsigned bit = 0; bit < 8; ++bit) {
      byte ^= std::byte{1} << bit;
      if (!is_noticed()) ++unnoticed;
      byte ^= std::byte{1} << bit;
    }
  return unnoticed;
}

}  // namespace

TEST_CASE("a change of any bit of a front fails its checksum", "[transport]") {
  Front front;
  const auto fails = [&] { return !check_front_checksum(front.header, front.rest).ok(); };
  REQUIRE_FALSE(fails());
  CHECK(unnoticed_changes(std::as_writable_bytes(std::span(&front.header, 1)), fails) == 0);
  CHECK(unnoticed_changes(front.rest, fails) == 0);
  CHECK_FALSE(fails());
}

TEST_CASE("a change of any bit of a tensor changes its checksum", "[transport]") {
  std::vector<std::byte> tensor(200);
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<std::byte>(i * 7 >> 3);
  const auto sum = [&] {
    RunningChecksum running;
    running.reach(tensor, tensor.size());
    return running.sum();
  };
  const auto before = sum();
  CHECK(unnoticed_changes(tensor, [&] { return sum() != before; }) == 0);
  CHECK(sum() == before);
}

TEST_CASE("a checksum does not depend on how tensors are transferred", "[transport]") {
  std::vector<std::byte> bytes(1'000'003);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 >> 3);
  RunningChecksum at_once;
  at_once.reach(bytes, bytes.size());
  RunningChecksum in_steps, as_it_comes;
  for (std::size_t end = 0; end < bytes.size(); end += 77'777) {
    in_steps.reach(bytes, end);
    as_it_comes.follow(bytes, end);
  }
  in_steps.reach(bytes, bytes.size());
  as_it_comes.follow(bytes, bytes.size());
  CHECK(in_steps.sum() == at_once.sum());
  CHECK(as_it_comes.sum() == at_once.sum());
  bytes[999'999] ^= std::byte{1};
  RunningChecksum other;
  other.reach(bytes, bytes.size());
  CHECK(other.sum() != at_once.sum());
}
