#include <string_view>
#include <utility>
#include <vector>

#include "core/units.h"
#include "simulation/machine/sockets.h"
#include "transport/control/delivery.h"
#include "transport/control/dialing_end.h"
#include "transport/control/loop_delivery.h"
#include "transport/wire/event_frame.h"

namespace troupe::simulation {
namespace {

using transport::Count;
using transport::Gone;
using transport::Message;

std::vector<std::string_view> views_of(const Parts& parts, std::size_t most) {
  return {parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(std::min(parts.size(), most))};
}

class SimulatedClient final : public transport::ControlClient, private DialingEnd {
 public:
  SimulatedClient(Wires& wires, const Wires::Party& who, transport::DialOptions options,
                  transport::ClientEvents events, Loop& loop)
      : DialingEnd(wires, who, std::move(options), {}),
        events_(std::move(events)),
        delivery_(loop, DialingEnd::options().link,
                  [this] { queue().post([this] { plug().resume(); }); }) {}
  ~SimulatedClient() override { delivery_.stop(); }

  using DialingEnd::check;

  void start() override {
    delivery_.start();
    if (is_alive()) dial();
  }

  Status send(const Message& message) override {
    auto parts = encode(message);
    if (!parts) return parts.error();
    if (told_ == 0 || told_ != connection_)
      return Error{message.type + ": there is no connection to " + options().endpoint};
    std::size_t bytes = 0;
    for (const auto& part : *parts) bytes += part.size();
    const bool is_first = std::exchange(sent_on_, connection_) != connection_;
    if (bytes > options().link.queue_bytes || (!is_first && has_full_queues()))
      return Error{message.type + ": " + std::to_string(options().link.queue) + " messages or " +
                   size_text(options().link.queue_bytes) + " wait to be sent to " +
                   options().endpoint + " already"};
    send_parts(std::move(*parts));
    return Done{};
  }

  const transport::Counters& counters() const override { return counters_; }

 private:
  void send_parts(Parts parts) {
    if (plug().send(std::move(parts))) return counters_.add(Count::sent);
    counters_.add(Count::too_slow);
    end(Gone::too_slow, options().endpoint + " let more than " +
                            std::to_string(options().link.high_water) + " messages come together");
  }

  bool may_read() const override { return !delivery_.is_full(); }

  void connected() override {
    connection_ = ++connections_;
    delivery_.add(0, [this, connection = connections_] {
      told_ = connection;
      if (events_.connected) events_.connected();
    });
  }

  void failed(const std::string& why) override {
    counters_.add(Count::failed_connection);
    passing_.refused(why);
  }

  void heard(const Parts& parts) override {
    using transport::HeadMessages;
    constexpr auto most = transport::most_parts_of_message;
    auto verdict = head_.hear(views_of(parts, most), parts.size() <= most);
    switch (verdict.what) {
      case HeadMessages::What::good:
        succeed();
        passing_.message(std::move(verdict.message));
        break;
      case HeadMessages::What::unknown:
        if (auto answer = encode(verdict.message)) send_parts(std::move(*answer));
        break;
      case HeadMessages::What::bad:
        if (!verdict.why.empty()) passing_.refused(verdict.why);
        break;
      case HeadMessages::What::too_bad:
        if (!verdict.why.empty()) passing_.refused(verdict.why);
        end(Gone::struck_off, verdict.end);
        break;
    }
  }

  void ended(const std::string& why) override { end(Gone::closed, why); }

  void end(Gone gone, const std::string& why) {
    connection_ = 0;
    hang_up();
    head_.begin();
    passing_.gone(gone, why);
  }

  transport::ClientEvents events_;
  transport::LoopDelivery delivery_;
  const transport::ClientEvents passing_ = delivered(events_, delivery_);
  transport::Counters counters_;
  transport::HeadMessages head_{counters_};
  std::uint64_t connections_ = 0;  // How many there were so far.
  std::uint64_t connection_ = 0;   // The number of the connection; 0: there is none.
  std::uint64_t told_ = 0;         // The last connection that was reported.
  std::uint64_t sent_on_ = 0;      // The last connection with a message.
};

class SimulatedSubscriber final : public transport::Subscriber, private DialingEnd {
 public:
  SimulatedSubscriber(Wires& wires, const Wires::Party& who, transport::DialOptions options,
                      const std::string& topic, transport::SubscriberEvents events, Loop& loop)
      : DialingEnd(wires, who, std::move(options),
                   {Greeting::Kind::subscriber, {}, {}, {}, {}, topic}),
        events_(std::move(events)),
        missed_(topic),
        delivery_(loop, DialingEnd::options().link,
                  [this] { queue().post([this] { plug().resume(); }); }) {}
  ~SimulatedSubscriber() override { delivery_.stop(); }

  Status start() {
    if (auto possible = check(); !possible) return possible;
    delivery_.start();
    if (is_alive()) dial();
    return Done{};
  }

  const transport::Counters& counters() const override { return counters_; }

 private:
  bool may_read() const override { return !delivery_.is_full(); }

  void connected() override {
    if (events_.connected) delivery_.add(0, [this] { events_.connected(); });
  }

  void failed(const std::string& why) override {
    counters_.add(Count::failed_connection);
    tell_refused(why);
  }

  void heard(const Parts& parts) override {
    auto event = parts.size() == 1
                     ? transport::decode_event(parts[0])
                     : Result<Message>(Error{"event: found several parts, wanted one"});
    if (!event) {
      counters_.add(Count::malformed);
      return tell_refused(event.error().text);
    }
    if (!transport::find_message_type(event->type)) return counters_.add(Count::unknown_type);
    succeed();
    counters_.add(Count::received);
    if (const auto count = missed_.before(*event); count > 0 && events_.missed)
      delivery_.add(event->run.size(),
                    [this, run = event->run, count] { events_.missed(run, count); });
    if (!events_.event) return;
    const auto bytes = bytes_of(*event);
    delivery_.add(bytes,
                  [this, event = std::move(*event)]() mutable { events_.event(std::move(event)); });
  }

  void ended(const std::string& why) override {
    hang_up();
    if (events_.gone) delivery_.add(why.size(), [this, why] { events_.gone(why); });
  }

  void tell_refused(const std::string& why) {
    if (events_.refused) delivery_.add(why.size(), [this, why] { events_.refused(why); });
  }

  transport::SubscriberEvents events_;
  transport::Counters counters_;
  transport::MissedEvents missed_;
  transport::LoopDelivery delivery_;
};

}  // namespace

Result<std::unique_ptr<transport::ControlClient>> make_client(Wires& wires, const Wires::Party& who,
                                                              transport::DialOptions options,
                                                              transport::ClientEvents events,
                                                              Loop& loop) {
  auto client =
      std::make_unique<SimulatedClient>(wires, who, std::move(options), std::move(events), loop);
  if (auto possible = client->check(); !possible) return possible.error();
  return std::unique_ptr<transport::ControlClient>(std::move(client));
}

Result<std::unique_ptr<transport::Subscriber>> make_subscriber(
    Wires& wires, const Wires::Party& who, transport::DialOptions options, std::string topic,
    transport::SubscriberEvents events, Loop& loop) {
  auto subscriber = std::make_unique<SimulatedSubscriber>(wires, who, std::move(options), topic,
                                                          std::move(events), loop);
  if (auto started = subscriber->start(); !started) return started.error();
  return std::unique_ptr<transport::Subscriber>(std::move(subscriber));
}

}  // namespace troupe::simulation
