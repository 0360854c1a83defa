#include "catch.h"
#include "play.h"
#include "transport/channels/frame.h"
#include "transport/links/edge_word.h"

using namespace troupe;
using namespace troupe::transport;
using namespace edges_play;

namespace {

EdgeWord word_of(EdgeWordKind kind) {
  EdgeWord word;
  word.kind = kind;
  word.run = {0x1234, 0x5678};
  word.epoch = 1;
  return word;
}

/// Two processes with one edge, ready; the test acts as a faulty peer.
struct OneEdge {
  OneEdge() : play(1, {.devices = 2, .edges = {{0, 1}}, .parcels = 0}) {
    play.begin_epoch(1);
    REQUIRE(play.run_until([&] { return play.all_are(Edges::Phase::ready); }));
    for (int i = 0; i < 1000; ++i) play.step();  // Waits for the grant.
  }

  void tell(int process, const EdgeWord& word, std::span<const std::byte> rest = {}) {
    std::vector<std::byte> bytes;
    write_edge_word(word, rest, bytes);
    play.process_at(process).edges->hear(bytes);
  }
  void tell_receiver_parcel(std::uint64_t number, std::span<const Tensor> tensors = {}) {
    std::vector<std::byte> front;
    write_front({}, tensors, front);
    number_front(front, 1, number, Checksums::off);
    tell(1, word_of(EdgeWordKind::parcel), front);
  }
  std::string reason(const std::optional<ChannelEnd>& end) {
    (void)play.run_until([&] { return end.has_value(); }, 2000);
    if (!end) return "nothing";
    CHECK(end->why == ChannelEnd::Why::broken);
    return end->text;
  }

  Play play;
};

}  // namespace

TEST_CASE_METHOD(OneEdge,
                 "words of other epochs, runs or edges, and of unknown senders, are refused",
                 "[edges]") {
  auto word = word_of(EdgeWordKind::cut);
  word.epoch = 2;
  tell(1, word);
  word.epoch = 0;
  tell(1, word);
  word = word_of(EdgeWordKind::cut);
  word.run[0] = 1;
  tell(1, word);
  word = word_of(EdgeWordKind::cut);
  word.edge = 7;
  tell(1, word);
  const std::byte few[3]{};
  play.process_at(1).edges->hear(few);
  word = word_of(static_cast<EdgeWordKind>(8));
  tell(1, word);
  const auto counters = play.process_at(1).edges->counters();
  CHECK(counters.other_epoch == 3);
  CHECK(counters.unknown_edge == 1);
  CHECK(counters.garbage == 2);
  for (int i = 0; i < 1000; ++i) play.step();
  CHECK_FALSE(play.edge(0).receiver_end.has_value());
  CHECK(play.all_are(Edges::Phase::ready));
}

TEST_CASE_METHOD(OneEdge, "a parcel out of order is refused", "[edges]") {
  tell_receiver_parcel(1);
  CHECK(reason(play.edge(0).receiver_end) == "a frame's number is 1, wanted 0");
}

TEST_CASE_METHOD(OneEdge, "a parcel beyond the grant is refused", "[edges]") {
  for (std::uint64_t i = 0; i < 3; ++i) tell_receiver_parcel(i);
  CHECK(reason(play.edge(0).receiver_end) == "the sender posts more than it was granted");
}

TEST_CASE_METHOD(OneEdge, "a parcel larger than the bound is refused", "[edges]") {
  MemoryPool pool;
  const auto tensor = Tensor::make(pool, {200'000}, DType::u8);
  tell_receiver_parcel(0, {&tensor, 1});
  CHECK(reason(play.edge(0).receiver_end) ==
        "a frame has 200000 bytes of tensors, at most 100064 may be");
}

TEST_CASE_METHOD(OneEdge, "a receive without a matching send is waited for only for a limited time",
                 "[edges]") {
  MemoryPool pool;
  const auto tensor = Tensor::make(pool, {1000}, DType::u8);
  tell_receiver_parcel(0, {&tensor, 1});
  for (int i = 0; i < 1000; ++i) play.step();
  CHECK(play.world().occupied(play.process_at(1).device));
  play.pass(patience);
  REQUIRE(play.run_until([&] { return play.edge(0).receiver_end.has_value(); }, 2000));
  CHECK(play.edge(0).receiver_end->text ==
        "edge 0: a parcel's receive was not done within 1000 ms");
}

TEST_CASE_METHOD(OneEdge, "a parcel without a front is refused", "[edges]") {
  tell(1, word_of(EdgeWordKind::parcel));
  CHECK(reason(play.edge(0).receiver_end) == "a parcel has no front");
}

TEST_CASE_METHOD(OneEdge, "a link must be named exactly once", "[edges]") {
  tell(1, word_of(EdgeWordKind::name), LinkId{}.bytes);
  CHECK(reason(play.edge(0).receiver_end) == "the sender names its link twice, or not at all");
}

TEST_CASE_METHOD(OneEdge, "a grant must not shrink or include parcels that were not sent",
                 "[edges]") {
  auto word = word_of(EdgeWordKind::grant);
  const auto [granted, arrived, text] =
      GENERATE(std::tuple(1u, 0u, "the receiver takes back what it has granted"),
               std::tuple(9u, 5u, "the receiver acknowledges parcels that were not sent"));
  word.granted = granted;
  word.arrived = arrived;
  tell(0, word);
  CHECK(reason(play.edge(0).sender_end) == text);
}

TEST_CASE_METHOD(OneEdge, "each end may send only its own kinds of words", "[edges]") {
  tell(0, word_of(EdgeWordKind::parcel));
  CHECK(reason(play.edge(0).sender_end) == "the receiver says what only a sender has to say");
  tell(1, word_of(EdgeWordKind::grant));
  CHECK(reason(play.edge(0).receiver_end) == "the sender says what only a receiver has to say");
}

TEST_CASE_METHOD(OneEdge,
                 "a receiver that is released closes the channel, and a lost sender breaks it",
                 "[edges]") {
  SECTION("receiver") {
    play.freeze(1);
    const auto large = play.edge(0).sender->lend({1000}, DType::i32);
    REQUIRE(play.edge(0).sender->send({}, {&large, 1}).ok());
    REQUIRE(play.run_until([&] { return play.world().occupied(play.process_at(0).device); }));
    play.edge(0).receiver.reset();
    play.thaw(1);
    REQUIRE(play.run_until([&] { return play.edge(0).sender_end.has_value(); }));
    CHECK(play.edge(0).sender_end->why == ChannelEnd::Why::closed);
    CHECK_FALSE(play.send(0).ok());
    // A parcel that was announced is still received, so no device is blocked.
    CHECK(play.run_until([&] { return play.world().idle(play.process_at(0).device); }));
    CHECK(play.all_are(Edges::Phase::ready));
  }
  SECTION("sender") {
    play.edge(0).sender.reset();
    REQUIRE(play.run_until([&] { return play.edge(0).receiver_end.has_value(); }));
    CHECK(play.edge(0).receiver_end->why == ChannelEnd::Why::lost);
    CHECK(play.edge(0).receiver_end->text ==
          "the other process died (connection closed without notice)");
  }
}
