#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::schedules {

/// A writer of Protocol Buffers messages; fields keep the order of the calls. A nested message is a
/// field of bytes.
class ProtoWriter {
 public:
  /// Adds an integer of any .proto type except fixed and zigzag types.
  void add(int field, std::int64_t number);
  void add(int field, std::string_view bytes);
  void add(int field, const ProtoWriter& message) { add(field, message.bytes()); }
  /// Adds a repeated integer, packed as in proto3.
  void add_packed(int field, const std::vector<std::int64_t>& numbers);

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace troupe::schedules
