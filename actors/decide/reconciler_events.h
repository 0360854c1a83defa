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
#include "transport/wire/fields.h"

/// What a reconciler hears. What has a `type` is said by nodes, and has its fields on the wire.
namespace troupe::actors::reconciler {

/// What a planner made of the nodes that it was given.
struct PlanChoice {
  std::vector<Life> members;  // Who has a part, in the order of the plan's nodes.
  double rate = 0;            // Steps per second.
  std::string text;           // For a person.

  static constexpr auto fields() {
    return std::tuple(transport::required("members", &PlanChoice::members),
                      transport::required("rate", &PlanChoice::rate),
                      transport::required("text", &PlanChoice::text));
  }
  friend bool operator==(const PlanChoice&, const PlanChoice&) = default;
};

/// The head has its lock, and has read what an earlier one left.
struct JournalRead {
  enum class Health : std::uint8_t { whole, torn, damaged };

  Health health = Health::whole;
  std::vector<Record> records;
  std::vector<std::int64_t> saved;  // Steps of the checkpoints that are there and complete.
};
/// A node is there, for the first time in its life or again.
struct Attached {
  static constexpr std::string_view type = "member.attached";

  Life life = 0;
  std::string name;
  std::uint64_t term = 0;   // The highest that it knows,
  std::uint64_t epoch = 0;  // and what it plays; 0: nothing.

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &Attached::life),
                      transport::required("name", &Attached::name),
                      transport::required("term", &Attached::term),
                      transport::required("epoch", &Attached::epoch));
  }
};
/// A node is gone: it said so, or the detector did.
struct Lost {
  Life life = 0;
  std::string why;
  bool is_silent = false;  // Nobody knows that its process has ended: it may be heard again.
};
/// By optimizer: the nodes that keep its state in their memory, in this epoch.
struct KeptBy {
  std::uint64_t epoch = 0;
  std::vector<std::vector<Life>> keepers;
};
/// Two nodes of an epoch do not reach each other. If both still reach the head, the path between
/// them is lost, and neither of them.
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
/// A node will go in so much time.
struct Notice {
  static constexpr std::string_view type = "member.notice";

  Life life = 0;
  Duration left{};

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &Notice::life),
                      transport::required("left", &Notice::left));
  }
};
/// Of the request with this number; nothing: no plan fits, and why.
struct PlanMade {
  std::uint64_t number = 0;
  std::optional<PlanChoice> choice;
  std::string why;
};
struct Prepared {
  static constexpr std::string_view type = "member.prepared";

  Life life = 0;
  std::uint64_t epoch = 0;

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &Prepared::life),
                      transport::required("epoch", &Prepared::epoch));
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
/// The newest step whose state the nodes of an epoch have in memory; 0: none.
struct LineFound {
  std::uint64_t epoch = 0;
  std::int64_t step = 0;
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
/// A node has stopped where it was, as it was told, or by itself: then the epoch is over.
struct Frozen {
  static constexpr std::string_view type = "member.frozen";

  Life life = 0;
  std::uint64_t epoch = 0;
  std::int64_t step = 0;  // Steps that it knows to be decided.

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
  std::string name = {};  // Of a node whose process has ended, in the place of its life.

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &StepFailed::life),
                      transport::required("epoch", &StepFailed::epoch),
                      transport::required("step", &StepFailed::step),
                      transport::required("why", &StepFailed::why),
                      transport::optional("name", &StepFailed::name));
  }
};
/// Nothing is in flight, and a checkpoint is due, was asked for, or the run is at its end.
struct SavePoint {
  static constexpr std::string_view type = "member.save_point";

  std::uint64_t epoch = 0;
  std::int64_t step = 0;

  static constexpr auto fields() {
    return std::tuple(transport::required("epoch", &SavePoint::epoch),
                      transport::required("step", &SavePoint::step));
  }
};
/// All parts of a save are on the disk, with the sizes and checksums that were told.
struct ShardsWritten {
  std::uint64_t save = 0;
};
/// The checkpoint is complete, even if it was given up meanwhile: older ones may have gone for it.
struct Saved {
  std::uint64_t save = 0;
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
/// Another head came later.
struct Deposed {
  std::uint64_t term = 0;
};
struct StopAsked {};
struct DrainAsked {
  std::string name;
};
/// A timer that an order has set.
struct Timeout {
  std::uint64_t timer = 0;
};

using Event = std::variant<JournalRead, Attached, Lost, KeptBy, PairLost, Suspected, Notice,
                           PlanMade, Prepared, PrepareFailed, LineFound, Loaded, LoadFailed, Frozen,
                           StepDecided, StepFailed, SavePoint, ShardsWritten, Saved, SaveFailed,
                           Slow, JournalFailed, Deposed, StopAsked, DrainAsked, Timeout>;

}  // namespace troupe::actors::reconciler
