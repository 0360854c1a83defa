#pragma once

#include "apps/client/reply.h"
#include "config/toml/diagnostics.h"
#include "core/result.h"

namespace troupe::apps {

/// Returns the refusal of a configuration that cannot run. `found` gives the first wrong key and
/// the fix; without it, the key is the error's first word, if that is a key.
Refusal misconfigured(const Error& error, const config::Diagnostics& found = {});

}  // namespace troupe::apps
