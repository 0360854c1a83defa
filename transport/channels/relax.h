#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace troupe::transport {

/// For the body of a loop that waits for another thread to write something.
inline void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace troupe::transport
