#include "apps/head_client.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <utility>

#include "transport/control_socket.h"

namespace troupe::apps {
namespace {

constexpr auto connect_patience = std::chrono::seconds(5);
constexpr auto answer_patience = std::chrono::seconds(60);

std::uint64_t random_id() {
  static std::random_device random;
  return (static_cast<std::uint64_t>(random()) << 31 ^ random()) | 1;
}

}  // namespace

class HeadClient::Line {
 public:
  Status dial(const transport::DialOptions& options) {
    const std::string& endpoint = options.endpoint;
    auto client = transport::ControlClient::dial(
        options,
        {.connected = [this] { set([this] { connected_ = true; }); },
         .message =
             [this](transport::Message message) {
               set([&] { answers_[message.re] = std::move(message); });
             },
         .gone = [this](transport::Gone, const std::string& why) { set([&] { gone_ = why; }); },
         .refused = [this](const std::string& why) { set([&] { refused_ = why; }); }});
    if (!client) return client.error();
    client_ = std::move(*client);
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, connect_patience, [&] { return connected_; }))
      return Error{"no head answers at " + endpoint +
                   (refused_.empty() ? "" : " (" + refused_ + ")") +
                   "; is `troupe head` running there?"};
    return Done{};
  }

  Result<Value> ask(const std::string& type, Value body) {
    transport::Message message;
    message.type = type;
    message.id = random_id();
    message.body = std::move(body);
    if (auto sent = client_->send(message); !sent) return sent.error();
    std::unique_lock lock(mutex_);
    const bool answered = changed_.wait_for(
        lock, answer_patience, [&] { return answers_.contains(message.id) || !gone_.empty(); });
    const auto found = answers_.extract(message.id);
    if (found.empty())
      return Error{answered ? "the head is gone: " + gone_
                            : "the head has not answered '" + type + "' within " +
                                  std::to_string(answer_patience.count()) + " s"};
    auto& answer = found.mapped();
    if (answer.type != "error") return std::move(answer.body);
    const Value* text = answer.body.find("message");
    return Error{text && text->text() ? *text->text() : "the head refused, and did not say why"};
  }

 private:
  template <class Change>
  void set(Change change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool connected_ = false;
  std::string gone_, refused_;
  std::map<std::uint64_t, transport::Message> answers_;
  std::unique_ptr<transport::ControlClient> client_;  // Last: its thread uses the others.
};

HeadClient::HeadClient() : line_(std::make_unique<Line>()) {}
HeadClient::~HeadClient() = default;

Result<std::unique_ptr<HeadClient>> HeadClient::dial(const transport::DialOptions& options) {
  std::unique_ptr<HeadClient> client(new HeadClient());
  if (auto dialed = client->line_->dial(options); !dialed) return dialed.error();
  auto welcome = client->ask("hello", Value::Map{});
  if (!welcome) return welcome.error();
  const Value* version = welcome->find("version");
  if (!version || !version->text() || *version->text() != TROUPE_VERSION)
    return Error{"the head at " + options.endpoint + " is troupe " +
                 (version && version->text() ? *version->text() : "of an unknown version") +
                 ", and this is troupe " TROUPE_VERSION};
  // What it has no right to is not answered at all.
  const Value* rights = welcome->find("rights");
  if (!rights || !rights->text() || rights->text()->find("operator") == std::string::npos)
    return Error{"the head at " + options.endpoint + " knows these keys as those of a " +
                 (rights && rights->text() ? *rights->text() : "stranger") +
                 ", who may not give orders; its list of hosts must say operator"};
  if (const Value* events = welcome->find("events"); events && events->text())
    client->events_ = *events->text();
  return client;
}

Result<Value> HeadClient::ask(const std::string& type, Value body) {
  return line_->ask(type, std::move(body));
}

}  // namespace troupe::apps
