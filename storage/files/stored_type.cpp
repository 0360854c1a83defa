#include "storage/files/stored_type.h"

#include <array>
#include <cassert>

namespace troupe::storage {
namespace {

struct Row {
  StoredType type;
  std::string_view spelled;
  std::size_t bytes;
  std::optional<DType> dtype;
};

constexpr std::array<Row, 15> rows = {{
    {StoredType::boolean, "BOOL", 1, {}},
    {StoredType::u8, "U8", 1, DType::u8},
    {StoredType::i8, "I8", 1, {}},
    {StoredType::f8_e5m2, "F8_E5M2", 1, {}},
    {StoredType::f8_e4m3, "F8_E4M3", 1, {}},
    {StoredType::i16, "I16", 2, {}},
    {StoredType::u16, "U16", 2, DType::u16},
    {StoredType::f16, "F16", 2, DType::f16},
    {StoredType::bf16, "BF16", 2, DType::bf16},
    {StoredType::i32, "I32", 4, DType::i32},
    {StoredType::u32, "U32", 4, {}},
    {StoredType::f32, "F32", 4, DType::f32},
    {StoredType::f64, "F64", 8, DType::f64},
    {StoredType::i64, "I64", 8, DType::i64},
    {StoredType::u64, "U64", 8, {}},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].type != static_cast<StoredType>(i)) return false;
  return true;
}
static_assert(in_order());

const Row& row(StoredType type) { return rows[static_cast<std::size_t>(type)]; }

}  // namespace

std::size_t bytes_of(StoredType type) { return row(type).bytes; }
std::string_view to_string(StoredType type) { return row(type).spelled; }
std::optional<DType> dtype(StoredType type) { return row(type).dtype; }

std::optional<StoredType> stored_type(std::string_view spelled) {
  for (const auto& each : rows)
    if (each.spelled == spelled) return each.type;
  return {};
}

StoredType stored_type(DType type) {
  for (const auto& each : rows)
    if (each.dtype == type) return each.type;
  assert(!"every type of core/ has its place in the table");
  return StoredType::u8;
}

}  // namespace troupe::storage
