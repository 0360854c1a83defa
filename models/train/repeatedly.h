#pragma once

#include "core/memory/stream.h"

namespace troupe::models {

/// Gives what `body` does to the stream as work that is likely to come again: a device that knows
/// it has it done at one word.
template <class Body>
void repeatedly(Stream& stream, Body body) {
  Device* device = stream.device();
  if (!device) return body();
  device->begin_repeated();
  try {
    body();
    device->end_repeated();
  } catch (...) {
    device->drop_repeated();
    throw;
  }
}

}  // namespace troupe::models
