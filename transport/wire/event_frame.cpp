#include "transport/wire/event_frame.h"

#include <array>
#include <utility>

namespace troupe::transport {
namespace {

constexpr std::size_t bytes_of_prelude = 16;

}  // namespace

std::string topic_of(const Message& event) { return event.run + "/" + event.type; }

Result<std::string> encode_event(const Message& event) {
  if (!event.payload.empty()) return Error{event.type + ": an event has no payload"};
  std::string bytes = topic_of(event);
  if (bytes.find('\0') != bytes.npos) return Error{event.type + ".run: found a zero byte"};
  const auto parts = encode(event);
  if (!parts) return parts.error();
  bytes += '\0';
  for (const auto& part : *parts) bytes += part;
  return bytes;
}

Result<Message> decode_event(std::string_view bytes) {
  const auto end = bytes.find('\0');
  if (end == bytes.npos) return Error{"event: found no zero byte, wanted one behind the topic"};
  const auto topic = bytes.substr(0, end);
  bytes.remove_prefix(end + 1);
  const auto prelude = read_prelude(bytes.substr(0, bytes_of_prelude));
  if (!prelude) return prelude.error();
  bytes.remove_prefix(bytes_of_prelude);
  const std::size_t envelope = prelude->envelope_bytes, body = prelude->body_bytes;
  if (bytes.size() != envelope + body)
    return Error{"event: found " + std::to_string(bytes.size()) +
                 " bytes behind the prelude, which announces " + std::to_string(envelope) +
                 " and " + std::to_string(body)};
  const std::array<std::string_view, 3> parts = {
      std::string_view(bytes.data() - bytes_of_prelude, bytes_of_prelude),
      bytes.substr(0, envelope), bytes.substr(envelope)};
  auto event = decode(parts);
  if (event && topic_of(*event) != topic)
    return Error{event->type + ": has another topic than it says"};
  return event;
}

}  // namespace troupe::transport
