#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::schedules {

/// A message of Protocol Buffers in the making: its fields in the order in which they are added.
/// A message within it is a field of bytes.
class ProtoWriter {
 public:
  /// Any integer type of a .proto file but the fixed and the zigzag ones.
  void add(int field, std::int64_t number);
  void add(int field, std::string_view bytes);
  void add(int field, const ProtoWriter& message) { add(field, message.bytes()); }
  /// A repeated integer, as proto3 has it.
  void add_packed(int field, const std::vector<std::int64_t>& numbers);

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace troupe::schedules
