#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "actors/decide/reconciler.h"

namespace troupe::actors::reconciler {

/// A node's half of what reconciler.h decides: as pure, and by the same messages. It knows one
/// head, the latest, and one epoch, the latest: what is of an earlier one changes nothing.
struct Member {
  enum class Doing : std::uint8_t {
    nothing,
    preparing,
    prepared,
    loading,
    loaded,
    playing,
    frozen
  };

  Life life = 0;
  std::uint64_t term = 0;
  std::uint64_t epoch = 0;
  Doing doing = Doing::nothing;
  PlanChoice plan;
  std::string weights;       // The digest of what it has read.
  std::int64_t line = 0;     // The step that the epoch begins after,
  std::int64_t decided = 0;  // and the last one that was decided; whoever plays counts.
};

/// What a head says to a node.
using HeadSays = std::variant<Prepare, Load, Activate, Adopt, Freeze, Abort, AskSavePoint, Save,
                              AbortSave, GoOn, Retire, Reject>;

// What a node does then.

/// Stop all work of an earlier epoch: its results are for nobody.
struct StopWork {};
struct MakeReady {
  std::uint64_t epoch = 0;
};
struct ReadState {
  std::uint64_t epoch = 0;
  std::int64_t step = 0;
};
struct PlayOn {
  std::uint64_t epoch = 0;
  std::int64_t step = 0;
};
/// Nothing shall be in flight, as soon as may be; then say so, and wait.
struct HoldSoon {};
struct WritePart {
  std::uint64_t save = 0;
  std::int64_t step = 0;
  Meanwhile meanwhile = Meanwhile::go_on;
};
struct DropPart {
  std::uint64_t save = 0;
};
struct Resume {
  std::int64_t step = 0;
};
/// Say again what a new head may not have heard: all steps since the line.
struct TellAgain {
  std::int64_t after = 0;
};
/// The process shall end, and perhaps begin another life.
struct Leave {
  std::string why;
};
/// To the head.
struct Tell {
  Event event;
};
/// To a head of the past: another one leads.
struct TellDeposed {
  std::uint64_t term = 0;
};

using Deed = std::variant<StopWork, MakeReady, ReadState, PlayOn, HoldSoon, WritePart, DropPart,
                          Resume, TellAgain, Leave, Tell, TellDeposed>;

/// What it says to a head that it finds.
Attached hello(const Member& member, const std::string& name);

/// Total. An order that comes twice is answered twice and done once.
struct MemberAnswer {
  Member member;
  std::vector<Deed> deeds;
};
MemberAnswer heard(Member member, std::uint64_t term, const HeadSays& order);

/// How what heard() asked for has ended; of an earlier epoch it is nothing.
MemberAnswer is_ready(Member member, const MakeReady& what, const Status& how);
struct ReadOutcome {
  std::string weights;  // The digest.
  LoadFailed::Cause cause = LoadFailed::Cause::node;
  std::string why;  // Empty: all is well.
};
MemberAnswer has_read(Member member, const ReadState& what, const ReadOutcome& how);

}  // namespace troupe::actors::reconciler
