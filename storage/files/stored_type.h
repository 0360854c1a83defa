#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/memory/dtype.h"

namespace troupe::storage {

/// The element types of safetensors files. Troupe computes with some of them. The order is the one
/// in which the official library sorts types.
enum class StoredType : std::uint8_t {
  boolean,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  f64,
  i64,
  u64
};

std::size_t bytes_of(StoredType type);

/// Returns the spelling in files: "F32".
std::string_view to_string(StoredType type);
std::optional<StoredType> stored_type(std::string_view spelled);

/// Returns the type that Troupe computes with, if there is one.
std::optional<DType> dtype(StoredType type);
StoredType stored_type(DType type);

}  // namespace troupe::storage
