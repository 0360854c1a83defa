#pragma once

#include "core/memory/stream.h"

namespace troupe::models {

/// Runs `body` and marks its work on the stream as likely to come again. A device that recorded the
/// same work before can replay it with one launch.
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
