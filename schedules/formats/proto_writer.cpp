#include "schedules/formats/proto_writer.h"

namespace troupe::schedules {

namespace {

// The wire types, which tell where a field's value ends.
enum class Wire : std::uint8_t { varint = 0, length_delimited = 2 };

/// Appends seven bits per byte, lowest first; the eighth bit says that more bytes follow. A
/// negative number is 64-bit two's complement, as in int64.
void append_varint(std::string& bytes, std::uint64_t number) {
  constexpr std::uint64_t more = 0x80;
  for (; number >= more; number >>= 7) bytes += static_cast<char>((number & 0x7f) | more);
  bytes += static_cast<char>(number);
}

void append_key(std::string& bytes, int field, Wire wire) {
  append_varint(bytes, static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire));
}

}  // namespace

void ProtoWriter::add(int field, std::int64_t number) {
  append_key(bytes_, field, Wire::varint);
  append_varint(bytes_, static_cast<std::uint64_t>(number));
}

void ProtoWriter::add(int field, std::string_view bytes) {
  append_key(bytes_, field, Wire::length_delimited);
  append_varint(bytes_, bytes.size());
  bytes_ += bytes;
}

void ProtoWriter::add_packed(int field, const std::vector<std::int64_t>& numbers) {
  std::string packed;
  for (const std::int64_t number : numbers)
    append_varint(packed, static_cast<std::uint64_t>(number));
  add(field, packed);
}

}  // namespace troupe::schedules
