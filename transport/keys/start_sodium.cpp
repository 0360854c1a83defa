#include "transport/keys/start_sodium.h"

#include <sodium.h>

#include <cstdlib>

namespace troupe::transport {

void start_sodium() {
  // This fails only if the system has no source of randomness, and then no key can be made either.
  if (sodium_init() < 0) std::abort();
}

}  // namespace troupe::transport
