#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "core/units.h"
#include "transport/wire/fields.h"

namespace troupe::actors {

/// Injects a fault. A person sends it to a head, and the head to a node, which applies it.
struct Chaos {
  static constexpr std::string_view type = "chaos";

  enum class What : std::uint8_t {
    kill,       // Like kill -9.
    stop,       // Stops, and continues after a while as if no time had passed.
    slow,       // Computes slower by a factor.
    partition,  // Closes its connections and makes no new ones for a while.
    disk_full,  // Nothing of a run can be saved.
  };

  What what = What::kill;
  std::string target;  // A node, or the run whose disk is full.
  double seconds = 5;
  double times = 4;

  std::chrono::nanoseconds time() const { return from_seconds(seconds); }
  static constexpr auto fields() {
    return std::tuple(transport::required("what", &Chaos::what),
                      transport::required("target", &Chaos::target),
                      transport::optional("seconds", &Chaos::seconds).at_least(0).at_most(3600),
                      transport::optional("times", &Chaos::times).at_least(1).at_most(1000));
  }
};
constexpr std::array<std::string_view, 5> enum_names(Chaos::What) {
  return {"kill", "stop", "slow", "partition", "disk-full"};
}

}  // namespace troupe::actors
