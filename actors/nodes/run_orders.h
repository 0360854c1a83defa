#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "actors/end_cause.h"
#include "actors/kept_step.h"
#include "actors/nodes/mesh.h"
#include "actors/nodes/placement.h"
#include "actors/player_id.h"
#include "core/value.h"
#include "transport/wire/fields.h"

/// Messages between a head and its nodes about an attempt of a run, except those of players. The
/// envelope contains the run, and the attempt as `epoch`.
namespace troupe::actors {

/// From head to node: open what the run needs, and a door for each other process.
struct Prepare {
  static constexpr std::string_view type = "prepare";

  Value config;
  Placement placement;
  int here = 0;  // The node's process number.
  std::vector<std::int64_t> tokens;
  std::vector<std::string> keys = {};  // Public keys by process; empty without keys.
  bool plain_tensors = false;          // Tensors may leave a machine unencrypted.

  static constexpr auto fields() {
    return std::tuple(transport::required("config", &Prepare::config),
                      transport::required("placement", &Prepare::placement),
                      transport::required("here", &Prepare::here).at_least(0),
                      transport::required("tokens", &Prepare::tokens),
                      transport::optional("keys", &Prepare::keys),
                      transport::optional("plain_tensors", &Prepare::plain_tensors));
  }
};

/// A data file and its digest.
struct DataHere {
  std::string path;
  std::string digest;

  static constexpr auto fields() {
    return std::tuple(transport::required("path", &DataHere::path),
                      transport::required("digest", &DataHere::digest));
  }
};

/// From node to head: it has prepared.
struct Prepared {
  static constexpr std::string_view type = "prepared";

  MeshAddress address;
  std::vector<KeptStep> kept;       // States of the run in its memory.
  std::vector<DataHere> data = {};  // The files it reads samples from.

  static constexpr auto fields() {
    return std::tuple(transport::required("address", &Prepared::address),
                      transport::optional("kept", &Prepared::kept),
                      transport::optional("data", &Prepared::data));
  }
};

/// From node to head: it could not prepare.
struct PrepareFailed {
  static constexpr std::string_view type = "prepare_failed";

  std::string why;
  EndCause cause = EndCause::failed;  // `lost`: it waited for another process that was lost.
  std::optional<int> lost = {};       // The lost process.

  static constexpr auto fields() {
    return std::tuple(transport::required("why", &PrepareFailed::why),
                      transport::optional("cause", &PrepareFailed::cause),
                      transport::optional("lost", &PrepareFailed::lost).at_least(0));
  }
};

/// From head to node: connect to the other processes and start your players.
struct Start {
  static constexpr std::string_view type = "stage.start";

  std::vector<MeshAddress> addresses;  // Indexed by process.
  std::vector<std::int64_t> tokens;    // The tokens to show there.
  std::int64_t step = 0;               // Steps that were done.
  std::vector<int> states;  // The process that gives each optimizer's state; empty: none is given.
  std::vector<std::vector<int>> keepers;  // Keepers of each state; empty: none.

  static constexpr auto fields() {
    return std::tuple(transport::required("addresses", &Start::addresses),
                      transport::required("tokens", &Start::tokens),
                      transport::required("step", &Start::step).at_least(0),
                      transport::required("states", &Start::states).at_least(0),
                      transport::required("keepers", &Start::keepers).at_least(0));
  }
};

/// From head to node: this attempt is over.
struct Stop {
  static constexpr std::string_view type = "stage.stop";

  static constexpr auto fields() { return std::tuple<>(); }
};

/// From head to node: the run has ended; drop its states.
struct Forget {
  static constexpr std::string_view type = "forget";

  static constexpr auto fields() { return std::tuple<>(); }
};

/// From node to head: a player has ended.
struct StageFailed {
  static constexpr std::string_view type = "stage.failed";

  PlayerId player;
  std::string why;
  EndCause cause = EndCause::failed;  // `lost`: its process lost another process.
  std::optional<int> lost = {};       // The lost process.

  static constexpr auto fields() {
    return std::tuple(transport::required("player", &StageFailed::player),
                      transport::required("why", &StageFailed::why),
                      transport::optional("cause", &StageFailed::cause),
                      transport::optional("lost", &StageFailed::lost).at_least(0));
  }
};

}  // namespace troupe::actors
