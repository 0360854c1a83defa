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

/// What other processes need to know of a device that has links of a kind.
struct LinkPlace {
  int device = 0;                    // In the run.
  std::string kind;                  // Links join devices of one kind,
  std::string place;                 // at two places: for GPUs these are the GPUs.
  std::vector<std::string> reaches;  // The places to which they lead, perhaps their own; where
                                     // none is named: all others.

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

/// Whether tensors can go from one to the other by a link. In both directions alike.
inline bool are_linked(const LinkPlace& one, const LinkPlace& other) {
  return one.kind == other.kind && one.joins(other.place) && other.joins(one.place);
}

/// The links of one kind that a device has, with the thread that calls their fabric.
struct DeviceLinks {
  /// `enter` is called on that thread, first.
  DeviceLinks(std::string kind_of_links, std::string its_place,
              std::vector<std::string> places_in_reach,
              std::unique_ptr<transport::Fabric> its_fabric, std::function<void()> enter = {})
      : kind(std::move(kind_of_links)),
        place(std::move(its_place)),
        reaches(std::move(places_in_reach)),
        fabric(std::move(its_fabric)),
        thread(std::move(enter)) {}

  const std::string kind;  // As in LinkPlace.
  const std::string place;
  const std::vector<std::string> reaches;
  const std::unique_ptr<transport::Fabric> fabric;
  transport::EdgeThread thread;
};

/// A device of this process from which tensors go to others without the host. A process has one for
/// each of its devices that has links.
struct LinkedDevice {
  explicit LinkedDevice(MemoryPool& its_memory) : memory(its_memory) {}

  MemoryPool& memory;  // Whose tensors its links take and bring; outlives it.
  std::vector<std::unique_ptr<DeviceLinks>> links;  // The kind that is best comes first.
};

}  // namespace troupe::actors
