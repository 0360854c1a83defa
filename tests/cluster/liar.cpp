#include "cluster/liar.h"

#include <unistd.h>

#include <utility>

namespace troupe::tests {
namespace {

transport::DialOptions dial(const std::string& head, std::optional<LiarKeys> keys) {
  auto options = dial_options(head);
  if (keys) {
    options.keys = std::move(keys->own);
    options.head_key = std::move(keys->head_key);
  }
  return options;
}

}  // namespace

Liar::Liar(const std::string& head, std::optional<LiarKeys> keys)
    : line_(dial(head, std::move(keys)), incarnation_) {
  (void)line_.connected.wait();
}

actors::Join Liar::introduction(const std::string& name) {
  actors::Inventory inventory;
  inventory.host = "here";
  inventory.pid = getpid();
  inventory.version = TROUPE_VERSION;
  inventory.memory = 1;
  inventory.precision = "fp32";
  actors::Join join;
  join.name = name;
  join.inventory = std::move(inventory);
  return join;
}

bool Liar::join(const std::string& name, std::uint64_t term) {
  return join(introduction(name), term);
}

bool Liar::join(const actors::Join& join, std::uint64_t term) {
  auto message = transport::to_message(join);
  message.incarnation = incarnation_;
  message.term = term;
  (void)line_.socket->send(message);
  const auto welcome = hear("node.welcome");
  if (!welcome) return false;
  return conversation_
      .resume(welcome->incarnation, welcome->ack,
              [this](const transport::Message& said) { return line_.socket->send(said); })
      .ok();
}

void Liar::say(transport::Message message) { (void)conversation_.say(std::move(message)); }

void Liar::say_unnumbered(transport::Message message) {
  message.incarnation = incarnation_;
  (void)line_.socket->send(message);
}

std::optional<transport::Message> Liar::hear(const std::string& type) {
  for (std::size_t i = 0; line_.messages.wait(i + 1); ++i) {
    const auto message = line_.messages[i];
    if (message.type == type) return message;
    if (message.type == "node.reject") return {};
  }
  return {};
}

std::vector<std::uint64_t> Liar::answered(std::size_t count) {
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; ids.size() < count && line_.messages.wait(i + 1); ++i)
    if (const auto message = line_.messages[i]; message.re != 0) ids.push_back(message.re);
  return ids;
}

transport::Message Liar::about(const std::string& run, const std::string& type) {
  auto message = message_of(type);
  message.run = run;
  message.epoch = 1;
  return message;
}

}  // namespace troupe::tests
