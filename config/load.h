#pragma once

#include <cstdint>
#include <string>

#include "config/run_config.h"
#include "config/toml/diagnostics.h"
#include "config/toml/document.h"
#include "core/result.h"
#include "core/value.h"

namespace troupe::config {

/// A configuration that was read and found good.
struct Loaded {
  RunConfig config;
  Value tree;            // Complete: every key with its value, defaults too, in the schema's order.
  Sources sources;       // Where the tree's positions point.
  std::string warnings;  // As the diagnostics print; empty where there are none.
};

/// Reads, merges and checks. The error is all diagnostics, as they print: for exit code 3.
Result<Loaded> load(const DocumentRequest& request);

/// The same for the body of a message; `name` is what diagnostics call it.
Result<Loaded> load_message(Value body, std::string name);
/// Likewise; `found` gets the diagnostics one by one.
Result<Loaded> load_message(Value body, std::string name, Diagnostics& found);

/// Sets one key of a run of which so many steps are done or can no more be changed, as `run.set`
/// asks. A learning rate goes to optimizer.changes: so whoever has the new tree computes the steps
/// before as they were. An error where the key is not live or the value not legal.
Result<Loaded> set_live(const Loaded& running, const std::string& setting, std::int64_t steps);

}  // namespace troupe::config
