#pragma once

// Before any header of Highway: the processors that a kernel is compiled for are those that fuse a
// multiplication and an addition, and a plain one that calls std::fma. So the bits are the same on
// all of them.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
