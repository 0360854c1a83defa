#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/memory/shape.h"
#include "core/result.h"
#include "storage/files/files.h"

namespace troupe::storage {

/// An array of bytes in the IDX format, used by MNIST and similar data.
class IdxArray {
 public:
  static Result<IdxArray> open(Files& files, const std::string& path);
  /// Returns an array or an error for any bytes. Accepts no element type but unsigned bytes.
  static Result<IdxArray> parse(Bytes bytes);

  const Shape& shape() const { return shape_; }
  std::span<const std::uint8_t> values() const { return values_; }
  Status unchanged() const { return bytes_.unchanged(); }

 private:
  Bytes bytes_;
  Shape shape_;
  std::span<const std::uint8_t> values_;
};

/// Writes a new file.
Status write_idx(Files& files, const std::string& path, const Shape& shape,
                 std::span<const std::uint8_t> values);

}  // namespace troupe::storage
