#pragma once

#include <string>
#include <string_view>

#include "core/value.h"
#include "transport/control/control_socket.h"
#include "transport/wire/wire.h"

namespace troupe::apps {

/// Returns whether a message changes something, so that its sender is recorded.
bool is_order(std::string_view type);
/// Returns a description of a sender for the record: "user 1000".
std::string who_is(const transport::Peer& peer);
/// Returns the run or node that a message names; empty if it names none.
std::string subject_of(const transport::Message& message);

/// Returns the answer message. An answer that exceeds a reader's limits (wire.h), such as a long
/// list of nodes, goes as JSON in the payload.
transport::Message answer_of(const Value& body);

}  // namespace troupe::apps
