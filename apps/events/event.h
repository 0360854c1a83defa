#pragma once

#include <string>

#include "core/env.h"
#include "core/value.h"
#include "transport/wire/message_types.h"

namespace troupe::apps {

/// An event of a run: a map that begins with `type` and `run`. `run` is empty for an event of a
/// head itself.
Value event(transport::MessageName type, const std::string& run);

/// Returns the event with `time`, which is `now` in seconds since 1970. An event that has a time
/// keeps it.
Value told_at(Env::WallTime now, Value event);

}  // namespace troupe::apps
