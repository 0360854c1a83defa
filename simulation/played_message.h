#pragma once

#include <string>

#include "transport/wire/fields.h"

/// Messages of the simulated protocol. They travel on the simulated network only, so the table of
/// the control plane (transport/wire/message_types.h) does not list them.
namespace troupe::simulation {

/// Returns a message that has only the type and the fields of the struct.
template <transport::HasFields T>
transport::Message to_played(const T& from) {
  transport::Message message;
  message.type = T::type;
  message.body = transport::to_value(from);
  return message;
}

/// Reads the body of a message that has the struct's type.
template <transport::HasFields T>
Result<T> from_played(const transport::Message& message) {
  return transport::from_value<T>(message.body, std::string(T::type) + ".body");
}

}  // namespace troupe::simulation
