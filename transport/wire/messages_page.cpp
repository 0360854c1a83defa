#include "transport/wire/messages_page.h"

#include <array>
#include <string_view>

#include "transport/wire/message_types.h"
#include "transport/wire/refusal.h"

namespace troupe::transport {
namespace {

constexpr std::string_view introduction =
    R"(<!-- A test generates this page from transport/wire/message_types.h; do not edit. -->

# Messages

A script sends messages to a head in any language that has ZeroMQ and msgpack.
`clients/python/troupe/wire.py` does it in eighty lines.

A message has three parts: a prelude of 16 bytes (`TRPE`, version, sizes), an envelope and a body.
Envelope and body are maps of msgpack. The envelope has `type`, `id` (the sender draws it for each
message) and `incarnation` (the sender draws it once). An answer has the `id` of the request in
`re`. The head executes a request once, even if it receives the same `id` again. Receivers ignore
unknown fields; an unknown key of a configuration is an error.

A key has roles, which the head's list of hosts gives it. `operator` and `viewer` are for persons
and scripts, `node` and `daemon` for processes of a host. Without keys (on one machine) every
client has all roles. The head answers `forbidden` if the key lacks the role, and ends the
connection after ten such messages within a minute. It answers `unsupported` if it does not handle
the type.
)";

struct Section {
  Topic topic;
  std::string_view title;
  std::string_view help;
};

constexpr std::array<Section, 6> sections = {{
    {Topic::connection, "A connection",
     "The first message of a connection is `hello` or `node.join`. The head answers other "
     "messages\n"
     "with `conflict` until then. A client that must notice a dead machine sets ZeroMQ's "
     "heartbeats\n"
     "(`HEARTBEAT_IVL`, `HEARTBEAT_TTL`): the head answers them, and sends none."},
    {Topic::question, "Requests to a head",
     "The head answers each with `answer` or with `error`. The fields of the answer stand in "
     "brackets."},
    {Topic::answer, "Answers",
     "A long answer comes as JSON in a fourth part, and its body is empty."},
    {Topic::event, "Events",
     "The head publishes events at the address that it sends in the answer to `hello` (SUB; the "
     "topic is\n`RUN/TYPE`). An event is one part: its topic, a zero byte, and the three parts of "
     "a message\none after another. The head also writes events to the file of the run. See "
     "[their\n"
     "fields](program.md#events)."},
    {Topic::host, "A head and the processes of a host", ""},
    {Topic::run, "A run: its head and its nodes",
     "The players of a run send each other messages and tensors over channels of their own."},
}};

constexpr bool each_topic_has_a_section() {
  for (const auto& type : message_types()) {
    bool is_there = false;
    for (const auto& section : sections) is_there |= section.topic == type.topic;
    if (!is_there) return false;
  }
  return true;
}
static_assert(each_topic_has_a_section());

std::string size_of(std::size_t bytes) {
  constexpr std::size_t kib = 1024;
  return bytes % (kib * kib) == 0 ? std::to_string(bytes / kib / kib) + " MiB"
                                  : std::to_string(bytes / kib) + " KiB";
}

std::string row_text(const MessageType& type) {
  return "| `" + std::string(type.name) + "` | " + std::string(type.body) + " | " +
         to_string(type.from) + " | " + size_of(type.bytes) + " | " + std::string(type.help) +
         " |\n";
}

/// Whether a script may send the message and gets an answer.
bool is_request(const MessageType& type) {
  const bool is_asked = type.topic == Topic::question || type.topic == Topic::connection;
  return is_asked && type.from.meets({Role::operator_, Role::viewer});
}

}  // namespace

std::string messages_page() {
  std::string page(introduction);
  for (const auto& section : sections) {
    page += "\n## " + std::string(section.title) + "\n\n";
    if (!section.help.empty()) page += std::string(section.help) + "\n\n";
    page += "| message | body | sender | at most | |\n|---|---|---|---|---|\n";
    for (const auto& type : message_types())
      if (type.topic == section.topic) page += row_text(type);
  }
  page += "\n## Codes of errors\n\n| code | meaning |\n|---|---|\n";
  for (const auto& kind : refusal_kinds)
    page += "| `" + std::string(kind.name) + "` | " + std::string(kind.help) + " |\n";
  return page;
}

std::string python_messages() {
  std::string text =
      "\"\"\"The messages that a script may send to a head.\n\n"
      "A test generates this file from transport/wire/message_types.h; do not edit it.\n\"\"\"\n\n"
      "from __future__ import annotations\n\nfrom typing import Literal\n\n"
      "MessageName = Literal[\n";
  for (const auto& type : message_types())
    if (is_request(type)) text += "    \"" + std::string(type.name) + "\",\n";
  return text + "]\n";
}

}  // namespace troupe::transport
