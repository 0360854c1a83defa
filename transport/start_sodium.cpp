#include "transport/start_sodium.h"

#include <sodium.h>

#include <cstdlib>

namespace troupe::transport {

void start_sodium() {
  // Fails only without a source of randomness, without which there are no keys either.
  if (sodium_init() < 0) std::abort();
}

}  // namespace troupe::transport
