#pragma once

#include <cstddef>

#include "core/descriptor.h"

namespace troupe {

/// Returns how many file descriptors this process may have open.
std::size_t descriptor_limit();

/// Raises the soft limit to the hard limit (`ulimit -Hn`).
void raise_descriptor_limit();

/// A file descriptor held in reserve for the moment when the process has none left. A connection
/// that the process cannot accept stays in the queue of its listening socket and wakes the owner of
/// the socket again at once. The reserve lets the owner accept such connections and close them.
class SpareDescriptor {
 public:
  SpareDescriptor();

  /// Returns whether accept() failed with this errno because no descriptor is left.
  static bool is_needed(int error);
  /// Closes the oldest pending connection of a nonblocking listening socket. Returns false if it
  /// closed none.
  bool turn_away(int listening);

 private:
  Descriptor spare_;
};

}  // namespace troupe
