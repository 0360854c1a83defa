#pragma once

#include "apps/client/reply.h"
#include "config/toml/diagnostics.h"
#include "core/result.h"

namespace troupe::apps {

/// A configuration that cannot be run: `found` says which key is the first that is wrong, and what
/// to do about it; without it the error's first word does, where it is a key.
Refusal misconfigured(const Error& error, const config::Diagnostics& found = {});

}  // namespace troupe::apps
