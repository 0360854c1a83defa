#pragma once

#include "config/load.h"
#include "core/result.h"
#include "storage/files/files.h"

/// What was set while a run was under way and decides its numbers, in runs/NAME/changes.toml: so
/// that whoever goes on from any of its checkpoints computes the same.
namespace troupe::apps {

/// On the disk when this returns.
Status keep_changes(storage::Files& files, const config::Loaded& loaded);

/// Puts what is kept into the configuration of a run that is resumed.
Status take_changes(storage::Files& files, config::Loaded& loaded);

}  // namespace troupe::apps
