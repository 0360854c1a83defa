#pragma once

#include <cstdint>
#include <string>

#include "config/run_config.h"
#include "config/toml/diagnostics.h"
#include "config/toml/document.h"
#include "core/result.h"
#include "core/value.h"

namespace troupe::config {

/// A valid configuration.
struct Loaded {
  RunConfig config;
  Value tree;            // Has every key, also defaults, in the schema's order.
  Sources sources;       // The texts to which the tree's positions refer.
  std::string warnings;  // As printed; empty if there are none.
};

/// Reads, merges and checks a configuration. The error contains all diagnostics as printed; a
/// command exits with code 3.
Result<Loaded> load(const DocumentRequest& request);

/// Loads the body of a message. Diagnostics call it `name`.
Result<Loaded> load_message(Value body, std::string name);
/// Loads the body of a message and adds its diagnostics to `found`.
Result<Loaded> load_message(Value body, std::string name, Diagnostics& found);

/// Sets one key of an active run, as `run.set` requests. `steps` is the number of steps that are
/// done or can no longer change. A learning rate is added to optimizer.changes, and the weights of
/// a mixture become a phase of data.mix, so the new tree repeats earlier steps unchanged. Fails if
/// the key is not live or the value is invalid.
Result<Loaded> set_live(const Loaded& running, const std::string& setting, std::int64_t steps);

/// Returns the configuration that leaves out one more step, counted from 1, which is not done yet.
Loaded leave_out_step(const Loaded& running, std::int64_t step);

}  // namespace troupe::config
