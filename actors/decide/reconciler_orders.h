#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "actors/decide/reconciler_events.h"

/// What a reconciler has others do. What has a `type` is said to nodes, and has its fields on the
/// wire; whom it is for is no field of it.
namespace troupe::actors::reconciler {

struct SetTimer {
  std::uint64_t timer = 0;
  Duration after{};
};
/// Plan for these nodes; the answer has the number.
struct MakePlan {
  std::uint64_t number = 0;
  std::vector<Life> nodes;
};
/// To nodes, from here on.
struct Prepare {
  static constexpr std::string_view type = "epoch.prepare";

  std::uint64_t epoch = 0;
  PlanChoice plan;

  static constexpr auto fields() {
    return std::tuple(transport::required("epoch", &Prepare::epoch),
                      transport::required("plan", &Prepare::plan));
  }
};
/// All nodes of the epoch are prepared: which is the newest step whose state they have in memory?
struct FindLine {
  std::uint64_t epoch = 0;
};
struct Load {
  static constexpr std::string_view type = "epoch.load";

  std::uint64_t epoch = 0;
  std::vector<Life> nodes;
  std::int64_t step = 0;  // The checkpoint; 0: what the seed or the configuration says.

  static constexpr auto fields() {
    return std::tuple(transport::required("epoch", &Load::epoch),
                      transport::required("step", &Load::step));
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
/// The head is another one, and all goes on.
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
/// At the next boundary, as soon as it is reached: SavePoint comes.
struct AskSavePoint {
  static constexpr std::string_view type = "epoch.ask_save_point";

  std::uint64_t epoch = 0;

  static constexpr auto fields() {
    return std::tuple(transport::required("epoch", &AskSavePoint::epoch));
  }
};
/// What nodes do while a save is written.
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
/// Nodes that hold after this step need not any more; one that has not reached it need not hold.
struct GoOn {
  static constexpr std::string_view type = "epoch.go_on";

  std::uint64_t epoch = 0;
  std::int64_t step = 0;

  static constexpr auto fields() {
    return std::tuple(transport::required("epoch", &GoOn::epoch),
                      transport::required("step", &GoOn::step));
  }
};
/// A node has no part in the run any more, and may go; or what it did was wrong, and it should not
/// be trusted before it has begun anew.
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
  int code = 0;  // What the program tells the shell.
  std::string why;
};

using Order =
    std::variant<SetTimer, MakePlan, Prepare, FindLine, Load, Activate, Adopt, Freeze, Abort,
                 AskSavePoint, Save, CommitSave, AbortSave, GoOn, Retire, Reject, Warn, End>;

}  // namespace troupe::actors::reconciler
