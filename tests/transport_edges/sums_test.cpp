#include "catch.h"
#include "play.h"
#include "transport/links/edge_word.h"

using namespace troupe;
using namespace troupe::transport;
using namespace edges_play;

namespace {

constexpr int many_steps = 20'000;

/// Three processes that form a sum and are ready. The test gives the addends.
struct OneSum {
  OneSum() : play(1, {.devices = 3, .edges = {}, .sums = {{0, 1, 2}}}) {
    play.send_nothing();
    play.begin_epoch(1);
    REQUIRE(play.run_until([&] { return play.all_are(Edges::Phase::ready); }));
  }

  Status add(std::size_t member, std::vector<std::int64_t> sizes) {
    std::int64_t count = 0;
    for (const auto size : sizes) count += size;
    auto numbers =
        Tensor::make(*play.process_at(static_cast<int>(member)).pool, {count}, DType::f32);
    for (std::int64_t i = 0; i < count; ++i) numbers.f32()[i] = static_cast<float>(i);
    return play.sum_end(member).adder->add(numbers, sizes, [this] { ++sums; });
  }
  bool occupied(int process) { return play.world().occupied(play.process_at(process).device); }
  void go_on(int steps = 3000) {
    for (int i = 0; i < steps; ++i) play.step();
  }
  void tell(const EdgeWord& word, std::span<const std::byte> rest) {
    std::vector<std::byte> bytes;
    write_edge_word(word, rest, bytes);
    play.process_at(0).edges->hear(bytes);
  }
  EdgeWord word(EdgeWordKind kind, std::uint64_t member) {
    EdgeWord word;
    word.kind = kind;
    word.run = {0x1234, 0x5678};
    word.epoch = 1;
    word.member = member;
    return word;
  }
  std::string reason(std::size_t member) {
    (void)play.run_until([&] { return play.sum_end(member).end.has_value(); }, many_steps);
    const auto& end = play.sum_end(member).end;
    return end ? end->text : "nothing";
  }

  Play play;
  int sums = 0;
};

const std::vector<std::int64_t> large{300, 300, 300};

}  // namespace

TEST_CASE_METHOD(OneSum,
                 "waiting for other members of a sum occupies no device, however long it takes",
                 "[edges]") {
  REQUIRE(add(0, large).ok());
  REQUIRE(add(2, large).ok());
  go_on();
  for (int i = 0; i < 5; ++i) {
    play.pass(patience);
    go_on(500);
    CHECK_FALSE((occupied(0) || occupied(1) || occupied(2)));
  }
  REQUIRE(add(1, large).ok());
  CHECK(play.run_until([&] { return sums == 3; }));
  CHECK(play.all_are(Edges::Phase::ready));
  CHECK(play.wrong() == "");
}

TEST_CASE_METHOD(OneSum,
                 "a sum that another end does not post is waited for only for a limited time",
                 "[edges]") {
  for (const std::size_t member : {0u, 1u, 2u}) REQUIRE(add(member, large).ok());
  // Process 1 has announced its part.
  play.process_at(1).edges->advance(EdgeTime());
  play.freeze(1);
  REQUIRE(play.run_until([&] { return occupied(0) && occupied(2); }));
  play.pass(patience);
  CHECK(reason(0) == "edge 0: a sum was not done within 1000 ms");
  CHECK(sums == 0);
}

TEST_CASE_METHOD(OneSum, "pieces of different sizes are not summed", "[edges]") {
  REQUIRE(add(0, large).ok());
  REQUIRE(add(1, {300, 301, 299}).ok());
  REQUIRE(add(2, large).ok());
  CHECK(reason(0) == "edge 0: member 1 adds up pieces of other sizes");
  CHECK(sums == 0);
}

TEST_CASE_METHOD(OneSum, "more sums than there are places are refused", "[edges]") {
  for (int i = 0; i < 2; ++i) REQUIRE(add(0, large).ok());
  const auto more = add(0, large);
  REQUIRE_FALSE(more.ok());
  CHECK(more.error().text == "2 sums wait already, and no more may");
  CHECK(reason(0) == "2 sums wait already, and no more may");
}

TEST_CASE_METHOD(OneSum, "an end that was released does not hinder the others", "[edges]") {
  for (const std::size_t member : {0u, 1u, 2u}) REQUIRE(add(member, large).ok());
  play.sum_end(1).adder.reset();
  CHECK(play.run_until([&] { return sums == 2; }));
  go_on();
  CHECK(sums == 2);
  CHECK_FALSE((occupied(0) || occupied(1) || occupied(2)));
}

TEST_CASE_METHOD(OneSum, "after an abort nothing is summed, and every end gives the reason",
                 "[edges]") {
  REQUIRE(add(0, large).ok());
  play.abort_all();
  REQUIRE(play.run_until([&] { return play.all_are(Edges::Phase::over); }));
  const auto refused = add(0, large);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().text == "the test says so");
  CHECK(reason(1) == "the test says so");
  CHECK(play.all_given_back());
}

TEST_CASE_METHOD(OneSum, "an end of a sum rejects every invalid word", "[edges]") {
  const std::vector<std::int64_t> sizes{1, 1, 1};
  const auto good = std::as_bytes(std::span(sizes));
  SECTION("who it is") {
    tell(word(EdgeWordKind::sum, 3), good);
    CHECK(reason(0) == "a sum is of member 3, who is none of the others");
  }
  SECTION("nor that it is itself") {
    tell(word(EdgeWordKind::sum, 0), good);
    CHECK(reason(0) == "a sum is of member 0, who is none of the others");
  }
  SECTION("how many there are") {
    tell(word(EdgeWordKind::sum, 1), good.first(2 * sizeof sizes[0]));
    CHECK(reason(0) == "member 1 has a sum of other members");
  }
  SECTION("how often") {
    for (int i = 0; i < 5; ++i) tell(word(EdgeWordKind::sum, 1), good);
    CHECK(reason(0) == "member 1 has more sums than can be");
  }
  SECTION("who names the link") {
    tell(word(EdgeWordKind::name, 1), LinkId{}.bytes);
    CHECK(reason(0) == "the link was named by another end");
  }
  SECTION("what it has to say") {
    tell(word(EdgeWordKind::grant, 1), {});
    CHECK(reason(0) == "another end says what is of no sum");
  }
}
