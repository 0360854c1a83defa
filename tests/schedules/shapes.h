#pragma once

#include "schedules/generators/registry.h"

namespace troupe::schedules {

/// Calls `visit` with every valid named schedule for up to `most` devices, 1 to 3P + 3
/// micro-batches and 1 to 4 chunks.
template <class Visit>
void for_each_small_schedule(int most, Visit visit) {
  for (const NamedSchedule& named : named_schedules())
    for (int devices = 1; devices <= most; ++devices)
      for (int m = 1; m <= 3 * devices + 3; ++m)
        for (int chunks = 1; chunks <= 4; ++chunks) {
          if (chunks == 1 && named.chunks == Chunks::two) continue;  // Would become 2.
          const auto made = generate(named.name, {devices * chunks, m, chunks});
          if (made) visit(*made);
        }
}

}  // namespace troupe::schedules
