#pragma once

#include "storage/files/temporary_folder.h"

/// For a test, which cannot do without.
struct TemporaryDirectory : troupe::storage::TemporaryFolder {
  TemporaryDirectory() : TemporaryFolder(*make()) {}
};
