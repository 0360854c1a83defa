#pragma once

#include <vector>

#include "storage/data/data_identity.h"
#include "storage/data/mixture.h"

namespace troupe::storage {

/// The data of a mixture: its sources, one behind the other.
struct OpenedMixture {
  OpenedData data;
  std::vector<std::int64_t> counts;  // The samples of each source.
};

/// Opens all sources of a mixture. They have samples of one shape. Errors name the source.
Result<OpenedMixture> open_mixture(const Mixture& mixture, const DataNeeds& needs, Files& files);

}  // namespace troupe::storage
