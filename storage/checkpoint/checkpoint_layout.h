#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "storage/checkpoint/manifest.h"
#include "storage/files/files.h"

namespace troupe::storage {

/// Shared by the sources behind checkpoint.h only.

constexpr std::string_view manifest_name = "manifest.json";

/// Returns the manifest of a directory if it is valid and of the directory's step.
Result<Manifest> open_manifest(Files& files, const std::string& directory);

/// Removes directories below `root` that a crash left without a manifest, of steps up to
/// `last_step`. Directories of later steps may belong to a save under way.
Result<std::vector<std::string>> remove_unfinished(Files& files, const std::string& root,
                                                   std::int64_t last_step);

}  // namespace troupe::storage
