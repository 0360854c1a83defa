#pragma once

#include "storage/files/temporary_folder.h"

/// A temporary folder that a test requires to exist.
struct TemporaryDirectory : troupe::storage::TemporaryFolder {
  TemporaryDirectory() : TemporaryFolder(*make()) {}
};
