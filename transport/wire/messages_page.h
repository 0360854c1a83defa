#pragma once

#include <string>

/// Texts that are generated from the table of messages (transport/wire/message_types.h). A test
/// compares them with the files of the repository.
namespace troupe::transport {

/// Returns docs/reference/messages.md: all messages and all error codes, for authors of scripts and
/// clients.
std::string messages_page();

/// Returns clients/python/troupe/messages.py: the names of the messages that a script may send.
std::string python_messages();

}  // namespace troupe::transport
