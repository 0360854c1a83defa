#pragma once

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "core/memory_pool.h"
#include "transport/edge_thread.h"
#include "transport/fields.h"
#include "transport/link.h"

namespace troupe::actors {

/// What other processes need to know of a device that has links.
struct LinkPlace {
  int device = 0;     // In the run.
  std::string kind;   // Links join devices of one kind,
  std::string place;  // at two places: for GPUs these are the GPUs.

  static constexpr auto fields() {
    return std::tuple(transport::required("device", &LinkPlace::device).at_least(0),
                      transport::required("kind", &LinkPlace::kind),
                      transport::required("place", &LinkPlace::place));
  }
};

/// Whether tensors can go from one to the other by a link. In both directions alike.
inline bool are_linked(const LinkPlace& one, const LinkPlace& other) {
  return one.kind == other.kind && one.place != other.place;
}

/// A device of this process from which tensors go to others without the host, with the thread that
/// calls its fabric. A process has one for each of its devices that has links.
struct LinkedDevice {
  /// `enter` is called on that thread, first.
  LinkedDevice(std::string kind_of_links, std::string its_place, MemoryPool& its_memory,
               std::unique_ptr<transport::Fabric> its_fabric, std::function<void()> enter = {})
      : kind(std::move(kind_of_links)),
        place(std::move(its_place)),
        memory(its_memory),
        fabric(std::move(its_fabric)),
        thread(std::move(enter)) {}

  const std::string kind;  // As in LinkPlace.
  const std::string place;
  MemoryPool& memory;  // Whose tensors its links take and bring; outlives it.
  const std::unique_ptr<transport::Fabric> fabric;
  transport::EdgeThread thread;
};

}  // namespace troupe::actors
