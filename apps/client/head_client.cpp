#include "apps/client/head_client.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <optional>
#include <random>
#include <utility>

#include "apps/client/client_network.h"
#include "apps/hosts/interfaces.h"
#include "apps/machine/signals.h"
#include "core/json.h"
#include "transport/wire/wire.h"

namespace troupe::apps {
namespace {

constexpr auto connect_patience = std::chrono::seconds(5);
// The time within which a signal ends a wait.
constexpr auto look_for_signals = std::chrono::milliseconds(50);
constexpr auto answer_patience = std::chrono::seconds(60);

constexpr transport::MessageName answer_type = "answer";
static_assert(transport::handles_all(transport::Handler::client,
                                     {answer_type.view(), Refusal::type}));

std::uint64_t random_id() {
  static std::random_device random;
  return (static_cast<std::uint64_t>(random()) << 31 ^ random()) | 1;
}

}  // namespace

class HeadClient::Line {
 public:
  Status dial(const transport::DialOptions& options, TellWait tell_wait) {
    tell_wait_ = std::move(tell_wait);
    endpoint_ = options.endpoint;
    auto client = own_.network.dial(
        options,
        {.connected = [this] { set([this] { ++connection_; }); },
         .message =
             [this](transport::Message message) {
               set([&] {
                 if (message.re == asked_) answer_ = std::move(message);
               });
             },
         .gone = [this](transport::Gone, const std::string&) { set([this] { ++ended_; }); },
         .refused = [this](const std::string& why) { set([&] { refused_ = why; }); }},
        *own_.loop);
    if (!client) return client.error();
    client_ = std::move(*client);
    client_->start();
    std::unique_lock lock(mutex_);
    return wait_for_connection(lock, Clock::now() + connect_patience);
  }

  void tell_waits(TellWait tell_wait) { tell_wait_ = std::move(tell_wait); }
  void end_waits_when(std::function<bool()> is_over) { is_over_ = std::move(is_over); }
  const std::string& endpoint() const { return endpoint_; }

  /// Asks again on the next connection if one ends. The head recognizes the id, so it acts once.
  Reply ask(const std::string& type, Value body) {
    transport::Message message;
    message.type = type;
    message.id = random_id();
    message.incarnation = incarnation_;
    message.body = std::move(body);
    if (auto parts = transport::encode(message); !parts) return parts.error();
    const auto end = Clock::now() + answer_patience;
    std::unique_lock lock(mutex_);
    asked_ = message.id;
    answer_.reset();
    while (!answer_) {
      if (auto connected = wait_for_connection(lock, end); !connected) return connected.error();
      const auto asked_on = connection_;
      // A send can fail only because the connection has ended, and `gone` is about to tell that.
      (void)say(message);
      const auto waited = wait(lock, end, [&] { return answer_ || ended_ >= asked_on; });
      if (waited == Waited::met) continue;
      if (waited == Waited::interrupted) return interrupted();
      return Error{"the head did not answer '" + type + "' within " +
                   std::to_string(answer_patience.count()) + " s"};
    }
    auto answer = std::move(*answer_);
    if (answer.type != Refusal::type && answer.type != answer_type.view())
      return Error{"the head answered '" + type + "' with '" + answer.type +
                   "'; wanted an answer or an error"};
    if (answer.type != Refusal::type && !answer.payload.empty())
      return parse_json(answer.payload[0]);
    if (answer.type != Refusal::type) return std::move(answer.body);
    auto refusal = transport::from_message<Refusal>(answer);
    if (!refusal)
      return within("the head refused the request and gave no reason that this version knows",
                    refusal.error());
    return std::move(*refusal);
  }

 private:
  using Clock = std::chrono::steady_clock;

  static Error interrupted() { return {"interrupted"}; }

  enum class Waited : std::uint8_t { met, late, interrupted };

  /// Waits until `is_met`. A signal that comes meanwhile ends the wait; after an earlier one a
  /// command may still have something to say to the head. So does what end_waits_when() was given.
  template <class IsMet>
  Waited wait(std::unique_lock<std::mutex>& lock, Clock::time_point end, IsMet is_met) {
    const auto began = Clock::now();
    const bool had_come = signal_came();
    for (std::chrono::seconds told{};;) {
      const auto next = std::min(end, Clock::now() + look_for_signals);
      if (changed_.wait_until(lock, next, is_met)) return Waited::met;
      if (!had_come && signal_came()) return Waited::interrupted;
      if (is_over_ && is_over_()) return Waited::interrupted;
      if (Clock::now() >= end) return Waited::late;
      const auto waited = std::chrono::floor<std::chrono::seconds>(Clock::now() - began);
      if (waited > std::exchange(told, waited) && tell_wait_) tell_wait_(waited);
    }
  }

  Status wait_for_connection(std::unique_lock<std::mutex>& lock, Clock::time_point end) {
    const auto waited = wait(lock, end, [&] { return connection_ > ended_; });
    if (waited == Waited::met) return Done{};
    if (waited == Waited::interrupted) return interrupted();
    return Error{"no head answered at " + endpoint_ +
                 (refused_.empty() ? "" : " (" + refused_ + ")") +
                 "; check that `troupe head` runs there"};
  }

  /// Sends a message; the lock is held. The first message on a connection is a hello.
  Status say(const transport::Message& message) {
    constexpr transport::MessageName greeting = "hello";
    if (greeted_ != connection_ && message.type != greeting.view()) {
      transport::Message hello;
      hello.type = greeting.text();
      hello.id = random_id();
      hello.incarnation = incarnation_;
      if (auto sent = client_->send(hello); !sent) return sent;
    }
    greeted_ = connection_;
    return client_->send(message);
  }

  template <class Change>
  void set(Change change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    changed_.notify_all();
  }

  /// A random incarnation, so that the head does not count misbehavior of other processes at this
  /// address against this one.
  const std::uint64_t incarnation_ = random_id();
  std::string endpoint_;
  TellWait tell_wait_;
  std::function<bool()> is_over_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t connection_ = 0;  // The number of connections made so far.
  std::uint64_t ended_ = 0;       // The number of the last connection that has ended.
  std::uint64_t greeted_ = 0;     // The last connection on which a hello was sent.
  std::string refused_;
  std::uint64_t asked_ = 0;  // The id of the question.
  std::optional<transport::Message> answer_;
  ClientNetwork own_;
  // Declared last: its callbacks use the other members.
  std::unique_ptr<transport::ControlClient> client_;
};

HeadClient::HeadClient() : line_(std::make_unique<Line>()) {}
HeadClient::~HeadClient() = default;

TellWait wait_on_stderr(const std::string& endpoint) {
  return [endpoint](std::chrono::seconds waited) {
    if (waited == std::chrono::seconds(2))
      std::fprintf(stderr, "waiting for an answer of the head at %s\n", endpoint.c_str());
  };
}

Result<std::unique_ptr<HeadClient>> HeadClient::dial(const transport::DialOptions& options,
                                                     TellWait tell_wait) {
  std::unique_ptr<HeadClient> client(new HeadClient());
  if (auto dialed = client->line_->dial(options, std::move(tell_wait)); !dialed)
    return dialed.error();
  auto welcome = client->ask("hello", Value::Map{});
  if (!welcome) return welcome.error();
  const Value* version = welcome->find("version");
  if (!version || !version->text() || *version->text() != TROUPE_VERSION)
    return Error{"the head at " + options.endpoint + " is troupe " +
                 (version && version->text() ? *version->text() : "of an unknown version") +
                 ", and this is troupe " TROUPE_VERSION};
  // Reports a key without the needed role before the first question.
  const Value* rights = welcome->find("rights");
  const auto has = [&](const char* role) {
    return rights && rights->text() && rights->text()->find(role) != std::string::npos;
  };
  if (!has("operator") && !has("viewer"))
    return Error{"the head at " + options.endpoint + " knows these keys as those of a " +
                 (rights && rights->text() ? *rights->text() : "stranger") +
                 ", which may not send requests; give them the role operator or viewer in the "
                 "head's allow list"};
  if (const Value* events = welcome->find("events"); events && events->text())
    client->events_ = reached_at(*events->text(), options.endpoint);
  return client;
}

void HeadClient::tell_waits(TellWait tell_wait) { line_->tell_waits(std::move(tell_wait)); }

void HeadClient::end_waits_when(std::function<bool()> is_over) {
  line_->end_waits_when(std::move(is_over));
}

const std::string& HeadClient::endpoint() const { return line_->endpoint(); }

Reply HeadClient::ask_as_written(const std::string& type, Value body) {
  return line_->ask(type, std::move(body));
}

}  // namespace troupe::apps
