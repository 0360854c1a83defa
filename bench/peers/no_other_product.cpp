#include "bench/peers/other_product.h"

namespace troupe::bench {

OtherProduct other_product(int) { return {}; }

}  // namespace troupe::bench
