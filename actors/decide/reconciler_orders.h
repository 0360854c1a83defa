#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "actors/decide/reconciler_events.h"
#include "actors/decide/sources.h"

/// The orders of a reconciler. Those with a `type` go to nodes; their fields go over the wire,
/// except the receivers.
namespace troupe::actors::reconciler {

struct SetTimer {
  std::uint64_t timer = 0;
  Duration after{};
};
/// Make a plan for these nodes. The answer has the same number.
struct MakePlan {
  std::uint64_t number = 0;
  std::vector<Life> nodes;
};
/// The orders below go to nodes.
struct Prepare {
  static constexpr std::string_view type = "epoch.prepare";

  std::uint64_t epoch = 0;
  PlanChoice plan;

  static constexpr auto fields() {
    return std::tuple(transport::required("epoch", &Prepare::epoch),
                      transport::required("plan", &Prepare::plan));
  }
};
struct Load {
  static constexpr std::string_view type = "epoch.load";

  std::uint64_t epoch = 0;
  std::vector<Life> nodes;
  StateSource source;

  static constexpr auto fields() {
    return std::tuple(transport::required("epoch", &Load::epoch),
                      transport::required("source", &Load::source));
  }
};
struct Activate {
  static constexpr std::string_view type = "epoch.activate";

  std::uint64_t epoch = 0;
  std::vector<Life> nodes;
  std::int64_t step = 0;

  static constexpr auto fields() {
    return std::tuple(transport::required("epoch", &Activate::epoch),
                      transport::required("step", &Activate::step));
  }
};
/// A new head leads, and the attempt continues.
struct Adopt {
  static constexpr std::string_view type = "epoch.adopt";

  std::uint64_t term = 0;
  std::uint64_t epoch = 0;
  std::vector<Life> nodes;

  static constexpr auto fields() {
    return std::tuple(transport::required("term", &Adopt::term),
                      transport::required("epoch", &Adopt::epoch));
  }
};
struct Freeze {
  static constexpr std::string_view type = "epoch.freeze";

  std::uint64_t epoch = 0;
  std::vector<Life> nodes;

  static constexpr auto fields() {
    return std::tuple(transport::required("epoch", &Freeze::epoch));
  }
};
struct Abort {
  static constexpr std::string_view type = "epoch.abort";

  std::uint64_t epoch = 0;
  std::vector<Life> nodes;

  static constexpr auto fields() { return std::tuple(transport::required("epoch", &Abort::epoch)); }
};
/// Stop at the next boundary; SavePoint is the answer.
struct AskSavePoint {
  static constexpr std::string_view type = "epoch.ask_save_point";

  std::uint64_t epoch = 0;

  static constexpr auto fields() {
    return std::tuple(transport::required("epoch", &AskSavePoint::epoch));
  }
};
/// Whether nodes continue while a save is written.
enum class Meanwhile : std::uint8_t { go_on, hold };
constexpr std::array<std::string_view, 2> enum_names(Meanwhile) { return {"go_on", "hold"}; }
struct Save {
  static constexpr std::string_view type = "epoch.save";

  std::uint64_t save = 0;
  std::uint64_t epoch = 0;
  std::int64_t step = 0;
  Meanwhile meanwhile = Meanwhile::go_on;

  static constexpr auto fields() {
    return std::tuple(transport::required("save", &Save::save),
                      transport::required("epoch", &Save::epoch),
                      transport::required("step", &Save::step),
                      transport::required("meanwhile", &Save::meanwhile));
  }
};
struct CommitSave {
  std::uint64_t save = 0;
  std::int64_t step = 0;
};
struct AbortSave {
  static constexpr std::string_view type = "epoch.abort_save";

  std::uint64_t save = 0;

  static constexpr auto fields() {
    return std::tuple(transport::required("save", &AbortSave::save));
  }
};
/// Nodes that hold after this step continue; nodes before it need not hold.
struct GoOn {
  static constexpr std::string_view type = "epoch.go_on";

  std::uint64_t epoch = 0;
  std::int64_t step = 0;

  static constexpr auto fields() {
    return std::tuple(transport::required("epoch", &GoOn::epoch),
                      transport::required("step", &GoOn::step));
  }
};
/// The node is not needed any more and may leave; or it did something wrong and must start again
/// before it is trusted.
struct Retire {
  static constexpr std::string_view type = "epoch.retire";

  Life life = 0;
  std::string why;

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &Retire::life),
                      transport::required("why", &Retire::why));
  }
};
struct Reject {
  static constexpr std::string_view type = "epoch.reject";

  Life life = 0;
  std::string why;

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &Reject::life),
                      transport::required("why", &Reject::why));
  }
};
struct Warn {
  std::string text;
};
constexpr int exit_too_few = 6;
struct End {
  int code = 0;  // The exit code.
  std::string why;
};

using Order =
    std::variant<SetTimer, MakePlan, Prepare, Load, Activate, Adopt, Freeze, Abort, AskSavePoint,
                 Save, CommitSave, AbortSave, GoOn, Retire, Reject, Warn, End>;

}  // namespace troupe::actors::reconciler
