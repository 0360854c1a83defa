#pragma once

// Include this before any Highway header. It selects the processors that kernels are compiled for:
// those with fused multiply-add, and a plain one that calls std::fma. All give equal bits. Highway
// 1.2 knows more processors than 1.0. For one that is not named here, fused-inl.h stops the
// compiler.
#define TROUPE_X86_TARGETS (HWY_AVX2 | HWY_AVX3)
// Bit 29 is HWY_NEON_WITHOUT_AES, a name that Highway 1.0 does not have yet.
#define TROUPE_ARM_TARGETS (HWY_NEON | (1LL << 29))
#define TROUPE_PLAIN_TARGETS (HWY_EMU128 | HWY_SCALAR)
#define HWY_DISABLED_TARGETS (~(TROUPE_X86_TARGETS | TROUPE_ARM_TARGETS | TROUPE_PLAIN_TARGETS))
