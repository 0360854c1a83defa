#pragma once

/// Whether a sanitizer looks on, with which all takes many times longer.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool is_sanitized = true;
#else
constexpr bool is_sanitized = false;
#endif
