#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/memory/memory_pool.h"
#include "transport/links/edge_thread.h"
#include "transport/links/link.h"
#include "transport/wire/fields.h"

namespace troupe::actors {

/// A device's links, as described to other processes.
struct LinkPlace {
  int device = 0;                    // Its number in the run.
  std::string kind;                  // Links join devices of equal kind
  std::string place;                 // at two places: GPUs, for example.
  std::vector<std::string> reaches;  // Places that its links reach; empty: all other places.

  bool joins(const std::string& other) const {
    return reaches.empty() ? place != other : std::ranges::count(reaches, other) > 0;
  }

  static constexpr auto fields() {
    return std::tuple(transport::required("device", &LinkPlace::device).at_least(0),
                      transport::required("kind", &LinkPlace::kind),
                      transport::required("place", &LinkPlace::place),
                      transport::optional("reaches", &LinkPlace::reaches));
  }
};

/// Returns whether a link can join the two devices. It is symmetric.
inline bool are_linked(const LinkPlace& one, const LinkPlace& other) {
  return one.kind == other.kind && one.joins(other.place) && other.joins(one.place);
}

/// A device's links of one kind, with the thread that calls their fabric.
struct DeviceLinks {
  /// Calls `enter` first on that thread.
  DeviceLinks(std::string kind_of_links, std::string its_place,
              std::vector<std::string> places_in_reach,
              std::unique_ptr<transport::Fabric> its_fabric, std::function<void()> enter = {})
      : kind(std::move(kind_of_links)),
        place(std::move(its_place)),
        reaches(std::move(places_in_reach)),
        fabric(std::move(its_fabric)),
        thread(std::move(enter)) {}

  const std::string kind;  // See LinkPlace.
  const std::string place;
  const std::vector<std::string> reaches;
  const std::unique_ptr<transport::Fabric> fabric;
  transport::EdgeThread thread;
};

/// A device of this process whose tensors can go to other devices without passing the host. A
/// process has one for each device with links.
struct LinkedDevice {
  explicit LinkedDevice(MemoryPool& its_memory) : memory(its_memory) {}

  MemoryPool& memory;  // The memory of tensors for its links. Must outlive it.
  std::vector<std::unique_ptr<DeviceLinks>> links;  // The best kind comes first.
};

}  // namespace troupe::actors
