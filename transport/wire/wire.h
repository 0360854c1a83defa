#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/value.h"

/// Converts a message to bytes and back.
///
/// On the wire a message has at least three parts (frames of one ZeroMQ message):
///
///     [prelude, 16 bytes] [envelope, a msgpack map] [body, a msgpack map] [payload] ...
///
/// The prelude is little-endian: the magic "TRPE", the major and the minor version (a byte each),
/// two bytes that are 0, the size of the envelope and the size of the body (four bytes each). A
/// Python script needs pyzmq and msgpack:
///
///     envelope = msgpack.packb({"type": "run.get", "id": secrets.randbits(63)})
///     body = msgpack.packb({"name": "gpt-small"})
///     prelude = struct.pack("<4sBBHII", b"TRPE", 1, 0, 0, len(envelope), len(body))
///     socket.send_multipart([prelude, envelope, body])
///
/// It reads an answer with `msgpack.unpackb` of the second and the third part.
///
/// The envelope has the members of Message below, under their names; an absent member has its
/// default. A reader skips unknown names, so that either end may be newer. All integers have 63
/// bits and a sign; texts are UTF-8.
namespace troupe::transport {

/// Rises when old readers must refuse the messages of new writers.
constexpr std::uint8_t wire_major = 1;
/// Rises when a message gets something that old readers may skip.
constexpr std::uint8_t wire_minor = 0;

/// A message of the control plane: its envelope, its body and its payload.
struct Message {
  std::string type;  // "run.submit"; message_types.h lists them.
  /// The sender's number for this message, or 0. A request has 63 random bits, and a repeated
  /// request has the same ones: the receiver does not carry out an id twice.
  std::uint64_t id = 0;
  std::uint64_t re = 0;  // The id of the message that this one answers.

  std::string run;                // The run that the message is about; may be empty.
  std::string from;               // The name of the node that sends it.
  std::uint64_t term = 0;         // The life of the head that the sender knows.
  std::uint64_t epoch = 0;        // The attempt of the run; 0 if the message is about none.
  std::uint64_t incarnation = 0;  // The life of the sending process: random, never reused.
  std::uint64_t seq = 0;          // Counts from 1 within an incarnation; 0 without a number.
  std::uint64_t ack = 0;          // The highest seq up to which all messages have come.

  Value body = Value::Map{};         // Always a map.
  std::vector<std::string> payload;  // Bytes that msgpack does not parse.
};

/// The limits of a reader. The size of a body with its payload depends on the type of the message
/// (message_types.h).
struct WireLimits {
  std::size_t envelope_bytes = std::size_t{4} << 10;
  std::size_t payload_parts = 8;
  int depth = 28;                                  // Nested lists and maps.
  std::size_t items = std::size_t{64} << 10;       // In one list or map.
  std::size_t text_bytes = std::size_t{64} << 10;  // In one text or key.
};

/// The first part of a message, whose version says whether the rest can be read at all.
struct Prelude {
  std::uint8_t major = 0;
  std::uint8_t minor = 0;
  std::uint32_t envelope_bytes = 0;
  std::uint32_t body_bytes = 0;
};

/// Reads a prelude of any version: 16 bytes that begin with the magic.
Result<Prelude> read_prelude(std::string_view part);

/// Returns the parts of a message, or an error if decode() would reject them. NaN and the
/// infinities become nil, as in JSON.
Result<std::vector<std::string>> encode(const Message& message, const WireLimits& limits = {});

/// Reads a message, whose type may be unknown. An error says where, what was found and what was
/// wanted. Allocates at most twice the bytes of the parts, plus 64 KiB. A value takes 48 bytes of
/// memory, so a sender puts a long list of small values into one text or into the payload.
Result<Message> decode(std::span<const std::string_view> parts, const WireLimits& limits = {});

}  // namespace troupe::transport
