#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "actors/decide/detector.h"
#include "actors/decide/reconciler_record.h"
#include "actors/kept_step.h"
#include "transport/wire/fields.h"

/// The events of a reconciler. Those with a `type` come from nodes; their fields go over the wire.
namespace troupe::actors::reconciler {

/// A planner's result for a set of nodes.
struct PlanChoice {
  std::vector<Life> members;     // The nodes in use, in the order of the plan.
  double rate = 0;               // Steps per second.
  std::string text;              // For users.
  std::vector<int> owners = {};  // Processes (indices of `members`), by optimizer.

  static constexpr auto fields() {
    return std::tuple(transport::required("members", &PlanChoice::members),
                      transport::required("rate", &PlanChoice::rate),
                      transport::required("text", &PlanChoice::text),
                      transport::optional("owners", &PlanChoice::owners));
  }
  friend bool operator==(const PlanChoice&, const PlanChoice&) = default;
};

/// The head holds its lock and has read the records of an earlier head.
struct JournalRead {
  enum class Health : std::uint8_t { whole, torn, damaged };

  Health health = Health::whole;
  std::vector<Record> records;
  std::vector<std::int64_t> saved;  // Steps of complete checkpoints, oldest first.
  std::int64_t committed = 0;       // Steps in the ledger.
  /// The last attempt of an earlier run of the same name. Its nodes may still speak of it.
  std::uint64_t earlier_attempts = 0;
};
/// A node has connected, for the first time or again.
struct Attached {
  static constexpr std::string_view type = "member.attached";

  Life life = 0;
  std::string name;
  std::uint64_t term = 0;   // The highest term that it knows.
  std::uint64_t epoch = 0;  // The attempt that it plays; 0: none.

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &Attached::life),
                      transport::required("name", &Attached::name),
                      transport::required("term", &Attached::term),
                      transport::required("epoch", &Attached::epoch));
  }
};
/// A node is lost, by its own report or by the detector's judgement.
struct Lost {
  Life life = 0;
  std::string why;
  bool is_silent = false;  // The process may still live, and so may be heard again.
};
/// The nodes that keep states in memory in this attempt, by optimizer.
struct KeptBy {
  std::uint64_t epoch = 0;
  std::vector<std::vector<Life>> keepers;
};
/// Two nodes of an attempt cannot reach each other. If both still reach the head, then the path is
/// lost, not a node.
struct PairLost {
  Life one = 0;
  Life other = 0;
  std::uint64_t epoch = 0;
  std::string why;
};
struct Suspected {
  Life life = 0;
  std::string why;
};
/// A node will leave after `left`.
struct Notice {
  static constexpr std::string_view type = "member.notice";

  Life life = 0;
  Duration left{};

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &Notice::life),
                      transport::required("left", &Notice::left));
  }
};
/// The answer to the plan request `number`; empty if no plan fits, with the reason.
struct PlanMade {
  std::uint64_t number = 0;
  std::optional<PlanChoice> choice;
  std::string why;
  std::uint64_t attempt = 0;  // The attempt's number, if it is greater than all earlier ones.
};
struct Prepared {
  static constexpr std::string_view type = "member.prepared";

  Life life = 0;
  std::uint64_t epoch = 0;
  std::vector<KeptStep> kept = {};  // The states in its memory.

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &Prepared::life),
                      transport::required("epoch", &Prepared::epoch),
                      transport::optional("kept", &Prepared::kept));
  }
};
struct PrepareFailed {
  static constexpr std::string_view type = "member.prepare_failed";

  Life life = 0;
  std::uint64_t epoch = 0;
  std::string why;

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &PrepareFailed::life),
                      transport::required("epoch", &PrepareFailed::epoch),
                      transport::required("why", &PrepareFailed::why));
  }
};
struct Loaded {
  static constexpr std::string_view type = "member.loaded";

  Life life = 0;
  std::uint64_t epoch = 0;
  std::int64_t step = 0;
  std::string weights;  // The digest of all that it read.

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &Loaded::life),
                      transport::required("epoch", &Loaded::epoch),
                      transport::required("step", &Loaded::step),
                      transport::required("weights", &Loaded::weights));
  }
};
/// A node cannot load its state. Or the state of that step is bad, which the reader of a checkpoint
/// tells too: then `life` is 0.
struct LoadFailed {
  static constexpr std::string_view type = "member.load_failed";

  enum class Cause : std::uint8_t { node, checkpoint };

  Life life = 0;
  std::uint64_t epoch = 0;
  std::int64_t step = 0;
  Cause cause = Cause::node;
  std::string why;

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &LoadFailed::life),
                      transport::required("epoch", &LoadFailed::epoch),
                      transport::required("step", &LoadFailed::step),
                      transport::required("cause", &LoadFailed::cause),
                      transport::required("why", &LoadFailed::why));
  }
};
constexpr std::array<std::string_view, 2> enum_names(LoadFailed::Cause) {
  return {"node", "checkpoint"};
}
/// A node has stopped, by order or by itself; in the second case the attempt is over.
struct Frozen {
  static constexpr std::string_view type = "member.frozen";

  Life life = 0;
  std::uint64_t epoch = 0;
  std::int64_t step = 0;  // The last step that it knows to be decided.

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &Frozen::life),
                      transport::required("epoch", &Frozen::epoch),
                      transport::required("step", &Frozen::step));
  }
};
struct StepDecided {
  static constexpr std::string_view type = "member.step_decided";

  std::uint64_t epoch = 0;
  std::int64_t step = 0;  // Steps done.

  static constexpr auto fields() {
    return std::tuple(transport::required("epoch", &StepDecided::epoch),
                      transport::required("step", &StepDecided::step));
  }
};
struct StepFailed {
  static constexpr std::string_view type = "member.step_failed";

  Life life = 0;
  std::uint64_t epoch = 0;
  std::int64_t step = 0;
  std::string why;
  std::string name = {};  // Set instead of `life` for a node whose process has ended.

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &StepFailed::life),
                      transport::required("epoch", &StepFailed::epoch),
                      transport::required("step", &StepFailed::step),
                      transport::required("why", &StepFailed::why),
                      transport::optional("name", &StepFailed::name));
  }
};
/// Nothing is in flight, and a checkpoint is due or was asked for, or the run is at its end.
struct SavePoint {
  static constexpr std::string_view type = "member.save_point";

  std::uint64_t epoch = 0;
  std::int64_t step = 0;

  static constexpr auto fields() {
    return std::tuple(transport::required("epoch", &SavePoint::epoch),
                      transport::required("step", &SavePoint::step));
  }
};
/// All parts of a save are on disk with the reported sizes and checksums.
struct ShardsWritten {
  std::uint64_t save = 0;
};
/// A checkpoint is complete, even if its save was given up: it may have replaced older ones.
struct Saved {
  std::uint64_t save = 0;  // 0: the supervisor's.
  std::int64_t step = 0;
};
struct SaveFailed {
  std::uint64_t save = 0;
  std::string why;
};
struct Slow {
  Life life = 0;
  std::string why;
};
struct JournalFailed {
  std::string why;
};
/// Another head has a higher term.
struct Deposed {
  std::uint64_t term = 0;
};
struct StopAsked {};
struct DrainAsked {
  std::string name;
};
/// A timer of an order has expired.
struct Timeout {
  std::uint64_t timer = 0;
};

using Event = std::variant<JournalRead, Attached, Lost, KeptBy, PairLost, Suspected, Notice,
                           PlanMade, Prepared, PrepareFailed, Loaded, LoadFailed, Frozen,
                           StepDecided, StepFailed, SavePoint, ShardsWritten, Saved, SaveFailed,
                           Slow, JournalFailed, Deposed, StopAsked, DrainAsked, Timeout>;

}  // namespace troupe::actors::reconciler
