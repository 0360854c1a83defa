#pragma once

#include <string>

namespace troupe::transport {

/// docs/reference/messages.md: the table of messages and the codes of errors, for who writes
/// scripts and clients.
std::string messages_page();

}  // namespace troupe::transport
