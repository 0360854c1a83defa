#include "transport/wire/wire.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>

#include "transport/wire/fields.h"
#include "transport/wire/message_types.h"
#include "transport/wire/msgpack.h"

namespace troupe::transport {
namespace {

constexpr std::string_view magic = "TRPE";
constexpr std::size_t prelude_bytes = 16;
/// Prelude, envelope, body.
constexpr std::size_t least_parts = 3;
/// The memory for the envelope, the stack of the parser and the texts of errors.
constexpr std::size_t envelope_memory = std::size_t{8} << 10;
constexpr std::size_t fixed_memory = std::size_t{64} << 10;
constexpr std::size_t longest_type = 64;

constexpr auto envelope_fields =
    std::tuple(required("type", &Message::type), optional("id", &Message::id),
               optional("re", &Message::re), optional("run", &Message::run),
               optional("from", &Message::from), optional("term", &Message::term),
               optional("epoch", &Message::epoch), optional("incarnation", &Message::incarnation),
               optional("seq", &Message::seq), optional("ack", &Message::ack));

void append_u32(std::string& out, std::size_t number) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(number >> shift & 0xff);
}

std::uint32_t read_u32(std::string_view bytes) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i)
    number |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return number;
}

std::string in_hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (!out.empty()) out += ' ';
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

bool is_type(std::string_view text) {
  const auto part_of_type = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  return !text.empty() && text.size() <= longest_type && std::ranges::all_of(text, part_of_type);
}

Error not_a_type() {
  return {"envelope.type: wanted at most " + std::to_string(longest_type) +
          " of the characters a-z, 0-9, '_' and '.'"};
}

std::size_t bytes_allowed(const std::string& type) {
  const auto* known = find_message_type(type);
  return known ? known->bytes : unknown_message_bytes;
}

std::string count_text(std::size_t count) { return std::to_string(count) + " bytes"; }

/// Checks the sizes of the parts. They depend on the type.
Status check_sizes(const std::string& type, std::size_t body, std::size_t payload,
                   std::size_t payload_parts, const WireLimits& limits) {
  if (payload_parts > limits.payload_parts)
    return Error{type + ": found " + std::to_string(payload_parts) +
                 " parts of payload, wanted at most " + std::to_string(limits.payload_parts)};
  const std::size_t most = bytes_allowed(type);
  if (body > most || payload > most - body)
    return Error{type + ": found " + count_text(body) + " of body and " + std::to_string(payload) +
                 " of payload, wanted at most " + std::to_string(most) + " in all"};
  return Done{};
}

/// The envelope leaves out members that have their defaults.
Value envelope_of(const Message& message) {
  const Message defaults;
  Value::Map envelope;
  envelope.reserve(std::tuple_size_v<decltype(envelope_fields)>);
  const auto add = [&](const auto& field) {
    const auto& member = message.*field.member;
    if (member != defaults.*field.member)
      envelope.push_back({std::string(field.name), detail::write(member), {}});
  };
  std::apply([&](const auto&... field) { (add(field), ...); }, envelope_fields);
  return envelope;
}

std::string prelude_of(std::size_t envelope, std::size_t body) {
  std::string out(magic);
  out += static_cast<char>(wire_major);
  out += static_cast<char>(wire_minor);
  out.append(2, '\0');
  append_u32(out, envelope);
  append_u32(out, body);
  return out;
}

}  // namespace

Result<Prelude> read_prelude(std::string_view part) {
  if (part.size() != prelude_bytes)
    return Error{"prelude: found " + count_text(part.size()) + ", wanted " +
                 std::to_string(prelude_bytes)};
  if (!part.starts_with(magic))
    return Error{"prelude: begins with the bytes " + in_hex(part.substr(0, magic.size())) +
                 ", wanted " + in_hex(magic) + " (\"TRPE\")"};
  Prelude prelude;
  prelude.major = static_cast<std::uint8_t>(part[4]);
  prelude.minor = static_cast<std::uint8_t>(part[5]);
  prelude.envelope_bytes = read_u32(part.substr(8));
  prelude.body_bytes = read_u32(part.substr(12));
  return prelude;
}

Result<std::vector<std::string>> encode(const Message& message, const WireLimits& limits) {
  if (!is_type(message.type)) return not_a_type();
  if (!message.body.map())
    return Error{message.type + ".body: found " + std::string(describe(message.body.kind())) +
                 ", wanted a table"};
  for (const auto number : {message.id, message.re, message.term, message.epoch,
                            message.incarnation, message.seq, message.ack})
    if (number > static_cast<std::uint64_t>(INT64_MAX))
      return Error{"envelope: found " + std::to_string(number) + ", wanted at most 63 bits"};
  std::string envelope = pack(envelope_of(message));
  if (envelope.size() > limits.envelope_bytes)
    return Error{"envelope: found " + count_text(envelope.size()) + ", wanted at most " +
                 std::to_string(limits.envelope_bytes)};
  std::string body = pack(message.body);
  std::size_t payload = 0;
  for (const auto& part : message.payload) payload += part.size();
  if (auto status = check_sizes(message.type, body.size(), payload, message.payload.size(), limits);
      !status)
    return status.error();
  // The sender refuses what the receiver would reject: here the caller is known.
  if (const auto readable = memory_to_unpack(body, limits, message.type + ".body"); !readable)
    return readable.error();

  std::vector<std::string> parts;
  parts.reserve(least_parts + message.payload.size());
  parts.push_back(prelude_of(envelope.size(), body.size()));
  parts.push_back(std::move(envelope));
  parts.push_back(std::move(body));
  parts.insert(parts.end(), message.payload.begin(), message.payload.end());
  return parts;
}

Result<Message> decode(std::span<const std::string_view> parts, const WireLimits& limits) {
  if (parts.size() < least_parts)
    return Error{"found a message of " + std::to_string(parts.size()) +
                 " parts, wanted a prelude, an envelope and a body"};
  const auto prelude = read_prelude(parts[0]);
  if (!prelude) return prelude.error();
  if (prelude->major != wire_major)
    return Error{"prelude: found version " + std::to_string(prelude->major) + "." +
                 std::to_string(prelude->minor) + " of the wire protocol, wanted " +
                 std::to_string(wire_major) + ".x"};
  if (parts[0][6] != 0 || parts[0][7] != 0)
    return Error{"prelude: found the bytes " + in_hex(parts[0].substr(6, 2)) +
                 " after the version, wanted 00 00"};
  if (prelude->envelope_bytes != parts[1].size() || prelude->body_bytes != parts[2].size())
    return Error{"prelude: announces an envelope of " + count_text(prelude->envelope_bytes) +
                 " and a body of " + std::to_string(prelude->body_bytes) + ", but they have " +
                 std::to_string(parts[1].size()) + " and " + std::to_string(parts[2].size())};
  if (parts[1].size() > limits.envelope_bytes)
    return Error{"envelope: found " + count_text(parts[1].size()) + ", wanted at most " +
                 std::to_string(limits.envelope_bytes)};

  Message message;
  {
    const auto envelope = unpack(parts[1], limits, envelope_memory, "envelope");
    if (!envelope) return envelope.error();
    if (auto status =
            detail::read_fields({nullptr, "envelope"}, *envelope, envelope_fields, message);
        !status)
      return status.error();
  }
  if (!is_type(message.type)) return not_a_type();

  const auto payload = parts.subspan(least_parts);
  std::size_t payload_bytes = 0;
  for (const auto part : payload) payload_bytes += part.size();
  if (auto status =
          check_sizes(message.type, parts[2].size(), payload_bytes, payload.size(), limits);
      !status)
    return status.error();

  // All that was and will be allocated apart from the body comes off what it may take.
  const std::size_t memory = 2 * (parts[0].size() + parts[1].size() + parts[2].size()) +
                             payload_bytes + fixed_memory - 2 * envelope_memory;
  auto body = unpack(parts[2], limits, memory, message.type + ".body");
  if (!body) return body.error();
  if (!body->map())
    return Error{message.type + ".body: found " + std::string(describe(body->kind())) +
                 ", wanted a table"};
  message.body = std::move(*body);
  message.payload.reserve(payload.size());
  for (const auto part : payload) message.payload.emplace_back(part);
  return message;
}

}  // namespace troupe::transport
