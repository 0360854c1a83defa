#pragma once

#include <cstddef>

#include "core/descriptor.h"

namespace troupe {

/// How many file descriptors this process may have open.
std::size_t descriptor_limit();

/// Raises the limit to the highest one that this process may set for itself (`ulimit -Hn`).
void raise_descriptor_limit();

/// A descriptor that is held in reserve, for the moment when no other is left. A connection that
/// nobody can accept stays in the queue of its listening socket, and wakes the owner of the socket
/// again at once. The reserve lets the owner accept such connections and close them.
class SpareDescriptor {
 public:
  SpareDescriptor();

  /// Whether accept() has failed with this errno because no descriptor is left.
  static bool is_needed(int error);
  /// Closes the connection that has waited longest at a listening socket that does not block.
  /// Returns false if none was closed.
  bool turn_away(int listening);

 private:
  Descriptor spare_;
};

}  // namespace troupe
