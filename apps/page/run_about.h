#pragma once

#include <string>

#include "core/value.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// Reads what the files of a run's folder tell of it, apart from its events. What they do not tell
/// is absent. Returns a map of
///   facts:       lists of a name and a text: the model, the data, the plan, the host, ...;
///   begun:       when the first process began to lead the run, in seconds since 1970;
///   steps:       the steps that it is to train;
///   lowest_loss: no model can have less on its data;
///   timeline:    `devices`, and `spans` as lists of device, action, begin and end in seconds, the
///                newest ones of each device;
///   flaws:       texts, one for each file that cannot be read.
Value about_run(storage::Files& files, const std::string& folder);

/// Returns the configuration in a run's folder; empty if there is none, or if it is far too long.
std::string config_of_run(storage::Files& files, const std::string& folder);

}  // namespace troupe::apps
