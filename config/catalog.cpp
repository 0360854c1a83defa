#include "config/catalog.h"

namespace troupe::config {

Catalog built_in_catalog() { return {models::model_kinds()}; }

}  // namespace troupe::config
