#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace troupe::transport {

/// Tells the processor that a loop polls memory that another thread will write.
inline void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace troupe::transport
