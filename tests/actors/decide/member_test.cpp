#include "actors/decide/member.h"

#include <optional>

#include "catch.h"

using namespace troupe::actors::reconciler;

namespace {

template <class Deed>
std::optional<Deed> done(const MemberAnswer& answer) {
  for (const auto& deed : answer.deeds)
    if (const auto* one = std::get_if<Deed>(&deed)) return *one;
  return {};
}

Load load_of(std::int64_t step) {
  return {1, {1}, {troupe::actors::StateSource::From::checkpoint, step, {}}};
}

}  // namespace

TEST_CASE("a node that stopped its attempt reports that to the head that adopts it", "[actors]") {
  Member member;
  member.life = 1;
  member.epoch = 3;
  member.doing = Member::Doing::frozen;
  const auto told = done<Tell>(heard(member, 4, Adopt{4, 3, {1}}));
  REQUIRE(told);
  CHECK(std::get<Frozen>(told->event).epoch == 3);
  CHECK_FALSE(done<Tell>(heard(member, 4, Adopt{4, 2, {1}})));
}

TEST_CASE("a node ignores late orders to load or activate an abandoned state", "[actors]") {
  Member member;
  member.life = 1;
  const auto hears = [&](const HeadSays& order) {
    auto answer = heard(member, 1, order);
    member = answer.member;
    return answer;
  };
  hears(Prepare{1, {{1}, 1, "alone"}});
  member = is_ready(member, MakeReady{1}, troupe::Done{}).member;
  CHECK(done<ReadState>(hears(load_of(7)))->step == 7);
  CHECK(done<ReadState>(hears(load_of(0)))->step == 0);
  CHECK_FALSE(done<ReadState>(hears(load_of(7))));
  const auto read = has_read(member, ReadState{1, 0}, {"initial", {}, {}});
  member = read.member;
  CHECK(std::get<Loaded>(done<Tell>(read)->event).step == 0);
  CHECK_FALSE(done<ReadState>(hears(load_of(7))));
  CHECK_FALSE(done<PlayOn>(hears(Activate{1, {1}, 7})));
  CHECK(done<PlayOn>(hears(Activate{1, {1}, 0})));
}
