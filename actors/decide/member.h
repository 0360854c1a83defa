#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "actors/decide/reconciler.h"

namespace troupe::actors::reconciler {

/// A node's counterpart of reconciler.h, as pure as that. It knows only the latest head and attempt
/// (here: epoch); messages about earlier ones change nothing.
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
  std::string weights;       // The digest of the state that it has read.
  std::int64_t line = 0;     // The step after which the attempt starts.
  std::int64_t decided = 0;  // The last decided step; the players count it.
};

/// The messages from a head to a node.
using HeadSays = std::variant<Prepare, Load, Activate, Adopt, Freeze, Abort, AskSavePoint, Save,
                              AbortSave, GoOn, Retire, Reject>;

// The actions that a node takes in response.

/// Stop all work of an earlier attempt, whose results are useless.
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
/// Drain as soon as possible; then report it and wait.
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
/// Report again what a new head may have missed: all steps since the start of the attempt.
struct TellAgain {
  std::int64_t after = 0;
};
/// End the process; it may start again.
struct Leave {
  std::string why;
};
/// Send an event to the head.
struct Tell {
  Event event;
};
/// Tell an old head that another one leads.
struct TellDeposed {
  std::uint64_t term = 0;
};

using Deed = std::variant<StopWork, MakeReady, ReadState, PlayOn, HoldSoon, WritePart, DropPart,
                          Resume, TellAgain, Leave, Tell, TellDeposed>;

/// Returns the greeting for a head.
Attached hello(const Member& member, const std::string& name);

/// Handles an order, in any state. A repeated order is answered again but done only once.
struct MemberAnswer {
  Member member;
  std::vector<Deed> deeds;
};
MemberAnswer heard(Member member, std::uint64_t term, const HeadSays& order);

/// Handle the outcome of an action of heard(). Outcomes of earlier attempts are ignored.
MemberAnswer is_ready(Member member, const MakeReady& what, const Status& how);
struct ReadOutcome {
  std::string weights;  // The digest of the state.
  LoadFailed::Cause cause = LoadFailed::Cause::node;
  std::string why;  // Empty if it succeeded.
};
MemberAnswer has_read(Member member, const ReadState& what, const ReadOutcome& how);

}  // namespace troupe::actors::reconciler
