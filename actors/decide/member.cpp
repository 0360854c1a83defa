#include "actors/decide/member.h"

#include <utility>

namespace troupe::actors::reconciler {
namespace {

using Doing = Member::Doing;

class Following {
 public:
  explicit Following(Member member) { answer_.member = std::move(member); }

  MemberAnswer to(std::uint64_t term, const HeadSays& order) {
    if (term < me().term) {
      act(TellDeposed{me().term});
    } else {
      me().term = term;
      std::visit([this](const auto& one) { on(one); }, order);
    }
    return std::move(answer_);
  }

  MemberAnswer ready(const MakeReady& what, const Status& how) {
    if (what.epoch != me().epoch || me().doing != Doing::preparing) return std::move(answer_);
    if (how) {
      me().doing = Doing::prepared;
      tell(Prepared{me().life, me().epoch});
    } else {
      me().doing = Doing::nothing;
      tell(PrepareFailed{me().life, me().epoch, how.error().text});
    }
    return std::move(answer_);
  }

  MemberAnswer read(const ReadState& what, const ReadOutcome& how) {
    if (what.epoch != me().epoch || me().doing != Doing::loading || what.step != me().line)
      return std::move(answer_);
    if (how.why.empty()) {
      me().doing = Doing::loaded;
      me().weights = how.weights;
      tell(Loaded{me().life, me().epoch, me().line, me().weights});
    } else {
      me().doing = Doing::prepared;
      tell(LoadFailed{me().life, me().epoch, what.step, how.cause, how.why});
    }
    return std::move(answer_);
  }

 private:
  Member& me() { return answer_.member; }
  void act(Deed deed) { answer_.deeds.push_back(std::move(deed)); }
  void tell(Event event) { act(Tell{std::move(event)}); }

  void on(const Prepare& prepare) {
    if (prepare.epoch < me().epoch) return;
    if (prepare.epoch == me().epoch) {
      if (me().doing == Doing::prepared) tell(Prepared{me().life, me().epoch});
      return;
    }
    act(StopWork{});
    me().epoch = prepare.epoch;
    me().plan = prepare.plan;
    me().doing = Doing::preparing;
    act(MakeReady{me().epoch});
  }

  void on(const Load& load) {
    if (load.epoch != me().epoch) return;
    if (me().doing == Doing::loading && load.source.step == me().line) return;
    if (me().doing == Doing::loaded && load.source.step == me().line)
      return tell(Loaded{me().life, me().epoch, me().line, me().weights});
    const bool has_begun = me().doing == Doing::loading || me().doing == Doing::loaded;
    if (me().doing != Doing::prepared && !has_begun) return;
    // An attempt falls back only to earlier states, so this order is outdated.
    if (has_begun && load.source.step > me().line) return;
    me().line = load.source.step;
    me().doing = Doing::loading;
    act(ReadState{me().epoch, load.source.step});
  }

  void on(const Activate& activate) {
    if (activate.epoch != me().epoch || me().doing != Doing::loaded) return;
    if (activate.step != me().line) return;
    me().doing = Doing::playing;
    me().decided = activate.step;
    act(PlayOn{me().epoch, activate.step});
  }

  void on(const Adopt& adopt) {
    if (adopt.epoch != me().epoch) return;
    if (me().doing == Doing::playing) act(TellAgain{me().line});
    if (me().doing == Doing::frozen) tell(Frozen{me().life, me().epoch, me().decided});
  }

  void on(const Freeze& freeze) {
    if (freeze.epoch < me().epoch) return;
    // It missed orders in between, which no longer matter.
    if (me().doing != Doing::frozen) act(StopWork{});
    me().epoch = freeze.epoch;
    me().doing = Doing::frozen;
    act(Tell{Frozen{me().life, freeze.epoch, me().decided}});
  }

  void on(const Abort& abort) {
    if (abort.epoch != me().epoch) return;
    act(StopWork{});
    me().doing = Doing::nothing;
  }

  void on(const AskSavePoint& ask) {
    if (ask.epoch == me().epoch && me().doing == Doing::playing) act(HoldSoon{});
  }
  void on(const Save& save) {
    if (save.epoch == me().epoch && me().doing == Doing::playing)
      act(WritePart{save.save, save.step, save.meanwhile});
  }
  void on(const AbortSave& abort) { act(DropPart{abort.save}); }
  void on(const GoOn& go_on) {
    if (go_on.epoch == me().epoch && me().doing == Doing::playing) act(Resume{go_on.step});
  }
  void on(const Retire& retire) {
    if (retire.life == me().life) act(Leave{retire.why});
  }
  void on(const Reject& reject) {
    if (reject.life == me().life) act(Leave{reject.why});
  }

  MemberAnswer answer_;
};

}  // namespace

Attached hello(const Member& member, const std::string& name) {
  const bool plays = member.doing == Doing::playing;
  return {member.life, name, member.term, plays ? member.epoch : 0};
}

MemberAnswer heard(Member member, std::uint64_t term, const HeadSays& order) {
  return Following(std::move(member)).to(term, order);
}
MemberAnswer is_ready(Member member, const MakeReady& what, const Status& how) {
  return Following(std::move(member)).ready(what, how);
}
MemberAnswer has_read(Member member, const ReadState& what, const ReadOutcome& how) {
  return Following(std::move(member)).read(what, how);
}

}  // namespace troupe::actors::reconciler
