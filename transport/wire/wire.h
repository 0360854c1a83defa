#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/value.h"

/// A message as bytes, and back.
///
/// On the wire a message has at least three parts (frames of one ZeroMQ message):
///
///     [prelude, 16 bytes] [envelope, a msgpack map] [body, a msgpack map] [payload] ...
///
/// The prelude is little-endian: the magic "TRPE", the major and the minor version (a byte each),
/// two bytes that are 0, the bytes of the envelope and the bytes of the body (four each). Whoever
/// knows pyzmq and msgpack can speak it:
///
///     envelope = msgpack.packb({"type": "run.get", "id": secrets.randbits(63)})
///     body = msgpack.packb({"name": "gpt-small"})
///     prelude = struct.pack("<4sBBHII", b"TRPE", 1, 0, 0, len(envelope), len(body))
///     socket.send_multipart([prelude, envelope, body])
///
/// and reads an answer with `msgpack.unpackb` of the second and the third part.
///
/// The type is the envelope's "type": the names of the envelope are those of Message below, and
/// what is left out has the value that stands there. Names that are not known are skipped, so that
/// either end may know more. All integers have 63 bits and a sign; texts are UTF-8.
namespace troupe::transport {

/// Raised when old readers must refuse what new writers say.
constexpr std::uint8_t wire_major = 1;
/// Raised when something was added that old readers may skip.
constexpr std::uint8_t wire_minor = 0;

/// Who says what to whom, about which run, in which order.
struct Message {
  std::string type;  // "run.submit"; message_types.h lists them.
  /// The sender's name for this message, 0 for none. Who asks draws 63 random bits, and asks again
  /// with the same ones: a request with an id that was seen is not done twice.
  std::uint64_t id = 0;
  std::uint64_t re = 0;  // The id that this answers.

  std::string run;                // What it is about; empty for none.
  std::string from;               // The node that says it, by its name.
  std::uint64_t term = 0;         // The life of the head that the sender knows.
  std::uint64_t epoch = 0;        // The plan in force, for what depends on it.
  std::uint64_t incarnation = 0;  // The life of the sending process: random, never reused.
  std::uint64_t seq = 0;          // From 1 up within an incarnation; 0 where none are counted.
  std::uint64_t ack = 0;          // The highest seq seen, without a gap, from the other side.

  Value body = Value::Map{};         // Always a map.
  std::vector<std::string> payload;  // Bytes that msgpack need not look at.
};

/// What a reader accepts. The bytes that a body and its payload may have depend on the type of the
/// message and stand in message_types.h.
struct WireLimits {
  std::size_t envelope_bytes = std::size_t{4} << 10;
  std::size_t payload_parts = 8;
  int depth = 8;                                   // Lists and maps within each other.
  std::size_t items = std::size_t{64} << 10;       // Of a list or a map.
  std::size_t text_bytes = std::size_t{64} << 10;  // Of a text or a key.
};

/// The first part of a message, whose version says whether the rest can be read at all.
struct Prelude {
  std::uint8_t major = 0;
  std::uint8_t minor = 0;
  std::uint32_t envelope_bytes = 0;
  std::uint32_t body_bytes = 0;
};

/// Of any version: 16 bytes that begin with the magic.
Result<Prelude> read_prelude(std::string_view part);

/// The parts of a message that decode() takes; an error where it would not. NaN and the infinities,
/// which JSON cannot say either, become nil.
Result<std::vector<std::string>> encode(const Message& message, const WireLimits& limits = {});

/// Any parts give a message, or an error that says where, what was found and what was wanted; its
/// type need not be a known one. Allocates at most twice the bytes of the parts and 64 KiB, all
/// told: a value takes 48 bytes of memory, so a long list of small values is better sent as one
/// text or as payload.
Result<Message> decode(std::span<const std::string_view> parts, const WireLimits& limits = {});

}  // namespace troupe::transport
