#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/result.h"
#include "transport/wire/wire.h"

/// An event as the bytes that a publisher sends. They are one part, because ZeroMQ 4.3.4 ends a
/// subscriber's process if its publisher goes between two parts of an event:
///
///     [topic] 00 [prelude] [envelope] [body]
///
/// The topic comes first, since ZeroMQ compares subscriptions with the beginning of a message.
namespace troupe::transport {

/// Returns "RUN/TYPE", or "/TYPE" without a run.
std::string topic_of(const Message& event);

/// Returns the bytes of an event, or an error if decode_event() would reject them. An event has no
/// payload.
Result<std::string> encode_event(const Message& event);

/// Reads the bytes of one event, neither more nor fewer. Its type may be unknown.
Result<Message> decode_event(std::string_view bytes);

}  // namespace troupe::transport
