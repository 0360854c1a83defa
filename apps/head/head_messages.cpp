#include "apps/head/head_messages.h"

#include <cstddef>
#include <vector>

#include "core/json.h"
#include "core/printable.h"
#include "transport/wire/message_types.h"

namespace troupe::apps {

bool is_order(std::string_view type) {
  const bool is_about = type.starts_with("run.") || type.starts_with("node.") || type == "chaos";
  return is_about && transport::may_send({transport::Role::operator_}, type) &&
         !transport::may_send({transport::Role::viewer}, type);
}

std::string who_is(const transport::Peer& peer) {
  constexpr std::size_t some = 8;
  if (!peer.key.empty()) return peer.host + " (key " + peer.key.substr(0, some) + "...)";
  return peer.user ? "user " + std::to_string(*peer.user) : peer.address;
}

std::string subject_of(const transport::Message& message) {
  for (const char* key : {"run", "node", "target", "name"})
    if (auto text = text_in(message.body, key); !text.empty()) return printable(text);
  return {};
}

transport::Message answer_of(const Value& body) {
  transport::Message answer;
  answer.type = transport::MessageName("answer").text();
  answer.body = body;
  const auto parts = transport::encode(answer);
  if (parts && transport::decode(std::vector<std::string_view>(parts->begin(), parts->end())))
    return answer;
  answer.body = Value::Map{};
  answer.payload.push_back(to_json(body));
  return answer;
}

}  // namespace troupe::apps
