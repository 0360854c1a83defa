#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "actors/cause.h"
#include "actors/nodes/mesh.h"
#include "actors/nodes/placement.h"
#include "actors/play/lines.h"
#include "actors/player_id.h"
#include "core/value.h"
#include "transport/wire/fields.h"

/// What a head and its nodes tell each other about an attempt of a run, beside what its players
/// say. The envelope has the run and the attempt, as its epoch.
namespace troupe::actors {

/// Head to node: open what the run needs, and a door for each of the others.
struct Prepare {
  static constexpr std::string_view type = "prepare";

  Value config;
  Placement placement;
  int here = 0;  // The node, in the placement.
  std::vector<std::int64_t> tokens;
  std::vector<std::string> keys = {};  // By process: the public keys; empty without any.
  bool plain_tensors = false;          // They may leave a machine in the clear.

  static constexpr auto fields() {
    return std::tuple(transport::required("config", &Prepare::config),
                      transport::required("placement", &Prepare::placement),
                      transport::required("here", &Prepare::here).at_least(0),
                      transport::required("tokens", &Prepare::tokens),
                      transport::optional("keys", &Prepare::keys),
                      transport::optional("plain_tensors", &Prepare::plain_tensors));
  }
};

/// A file of data, and what its bytes hash to.
struct DataHere {
  std::string path;
  std::string digest;

  static constexpr auto fields() {
    return std::tuple(transport::required("path", &DataHere::path),
                      transport::required("digest", &DataHere::digest));
  }
};

/// Node to head: it has.
struct Prepared {
  static constexpr std::string_view type = "prepared";

  MeshAddress address;
  std::vector<KeptStep> kept;       // Of the run, in its memory.
  std::vector<DataHere> data = {};  // What it reads samples from.

  static constexpr auto fields() {
    return std::tuple(transport::required("address", &Prepared::address),
                      transport::optional("kept", &Prepared::kept),
                      transport::optional("data", &Prepared::data));
  }
};

/// Node to head: it cannot.
struct PrepareFailed {
  static constexpr std::string_view type = "prepare_failed";

  std::string why;
  Cause cause = Cause::failed;   // Lost: another process was, on which it waited.
  std::optional<int> lost = {};  // That process, in the placement.

  static constexpr auto fields() {
    return std::tuple(transport::required("why", &PrepareFailed::why),
                      transport::optional("cause", &PrepareFailed::cause),
                      transport::optional("lost", &PrepareFailed::lost).at_least(0));
  }
};

/// Head to node: connect to the others and let your players begin.
struct Start {
  static constexpr std::string_view type = "stage.start";

  std::vector<MeshAddress> addresses;  // By process.
  std::vector<std::int64_t> tokens;    // To show there.
  std::int64_t step = 0;               // Steps that were done.
  std::vector<int> states;  // By optimizer: which process gives its state; empty: none is given.
  std::vector<std::vector<int>> keepers;  // Likewise: which keep copies of it; empty: none do.

  static constexpr auto fields() {
    return std::tuple(transport::required("addresses", &Start::addresses),
                      transport::required("tokens", &Start::tokens),
                      transport::required("step", &Start::step).at_least(0),
                      transport::required("states", &Start::states).at_least(0),
                      transport::required("keepers", &Start::keepers).at_least(0));
  }
};

/// Head to node: this attempt is over.
struct Stop {
  static constexpr std::string_view type = "stage.stop";

  static constexpr auto fields() { return std::tuple<>(); }
};

/// Head to node: the run has ended. What is kept of it need not be kept any more.
struct Forget {
  static constexpr std::string_view type = "forget";

  static constexpr auto fields() { return std::tuple<>(); }
};

/// Node to head: a player has ended.
struct StageFailed {
  static constexpr std::string_view type = "stage.failed";

  PlayerId player;
  std::string why;
  Cause cause = Cause::failed;   // Lost: its process has lost another one.
  std::optional<int> lost = {};  // That process, in the placement.

  static constexpr auto fields() {
    return std::tuple(transport::required("player", &StageFailed::player),
                      transport::required("why", &StageFailed::why),
                      transport::optional("cause", &StageFailed::cause),
                      transport::optional("lost", &StageFailed::lost).at_least(0));
  }
};

}  // namespace troupe::actors
