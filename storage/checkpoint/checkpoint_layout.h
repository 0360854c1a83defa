#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "storage/checkpoint/manifest.h"
#include "storage/files/files.h"

namespace troupe::storage {

/// What only the parts of checkpoint.h share.

constexpr std::string_view manifest_name = "manifest.json";

/// The manifest of a directory, if it is good and belongs there.
Result<Manifest> open_manifest(Files& files, const std::string& directory);

/// Removes the directories below `root` that a crash left without a manifest, of steps up to
/// `last_step`: those of later steps may be another's.
Result<std::vector<std::string>> remove_unfinished(Files& files, const std::string& root,
                                                   std::int64_t last_step);

}  // namespace troupe::storage
