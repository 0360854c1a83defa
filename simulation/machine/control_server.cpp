#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "core/units.h"
#include "simulation/machine/sockets.h"
#include "transport/control/delivery.h"
#include "transport/control/loop_delivery.h"
#include "transport/wire/event_frame.h"

namespace troupe::simulation {
namespace {

using transport::Connection;
using transport::ControlPeers;
using transport::Count;
using transport::Gone;
using transport::Message;
using transport::Peer;
using transport::PeerId;

std::size_t bytes_of_parts(const Parts& parts) {
  std::size_t bytes = 0;
  for (const auto& part : parts) bytes += part.size();
  return bytes;
}

class SimulatedServer final : public transport::ControlServer,
                              private ControlPeers::Socket,
                              private Listening {
 public:
  SimulatedServer(Wires& wires, const Wires::Party& who, transport::ServerOptions options,
                  transport::ServerEvents events, Loop& loop)
      : scheduler_(wires.scheduler()),
        wires_(wires),
        machine_(who.machine),
        process_(who.process),
        options_(std::move(options)),
        events_(std::move(events)),
        queue_(scheduler_, who.process, "server"),
        delivery_(loop, options_.link, [this] { queue_.post([this] { read_on(); }); }),
        peers_(options_, passed_on(), counters_, *this),
        listening_(wires, who,
                   {Greeting::Kind::client, options_.link, options_.keys, peers_.allowed(),
                    counters_, delivered(events_, delivery_).refused}) {
    peers_.set_time(scheduler_.now());
  }
  ~SimulatedServer() override { delivery_.stop(); }

  Status open() { return listening_.open(options_.endpoint, *this); }

  void start() override { delivery_.start(); }
  const std::string& endpoint() const override { return listening_.endpoint(); }
  const transport::Counters& counters() const override { return counters_; }

  Status send(PeerId peer, const Message& message) override {
    auto parts = encode(message);
    if (!parts) return parts.error();
    if (bytes_of_parts(*parts) > options_.link.queue_bytes || wires_.has_full_queues(machine_))
      return Error{endpoint() + ": " + std::to_string(options_.link.queue) + " orders or " +
                   size_text(options_.link.queue_bytes) + " wait for this socket already"};
    return act([&] { peers_.send(peer, *parts); });
  }
  Status cut(PeerId peer, std::string why) override {
    return act([&] { peers_.cut(peer, why); });
  }
  Status strike(PeerId peer, std::string why) override {
    return act([&] { peers_.strike(peer, why); });
  }
  Status allow(transport::AllowList allowed) override {
    return act([&] { peers_.allow(std::move(allowed)); });
  }

 private:
  /// A connection.
  struct Guest final : Plugged {
    Guest(SimulatedServer& of, Plug own, Connection about, std::string its_key)
        : server(of), plug(std::move(own)), connection(std::move(about)), key(std::move(its_key)) {}

    bool reads() const override { return !server.delivery_.is_full(); }
    void hear(Parts parts) override { server.hear(*this, parts); }
    void over(Over) override { server.lose(connection.number); }

    SimulatedServer& server;
    Plug plug;
    Connection connection;
    std::string key;
    bool has_spoken = false;
  };

  template <class Action>
  Status act(Action action) {
    if (!scheduler_.is_alive(process_)) return Done{};
    peers_.set_time(scheduler_.now());
    action();
    watch_clock();
    return Done{};
  }

  /// Returns callbacks for the sessions, which pass everything on to the loop.
  transport::ServerEvents passed_on() {
    auto events = delivered(events_, delivery_);
    events.refused = [this](const std::string& address, const std::string& why) {
      listening_.tell_refused(address, why);
    };
    return events;
  }

  void accept(Plug plug, Parts hello) override {
    const auto greeting = listening_.welcome(plug, hello);
    if (!greeting) return;
    const auto connection = listening_.connection_of(plug);
    plug.allow_repeats();
    auto guest = std::make_unique<Guest>(*this, std::move(plug), connection, greeting->public_key);
    guest->plug.set_owner(*guest);
    guests_[connection.number] = std::move(guest);
    for (const auto& [number, why] : listening_.add(connection)) shut_number(number);
  }

  void hear(Guest& guest, const Parts& parts) {
    (void)act([&] {
      const auto route = std::to_string(guest.connection.number);
      if (!guest.plug || (!peers_.has_session(route) && peers_.is_rejected(route))) return;
      guest.has_spoken = true;
      constexpr auto most = transport::most_parts_kept;
      const std::vector<std::string_view> kept(
          parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(std::min(parts.size(), most)));
      origin_ = {guest.connection, guest.key};
      peers_.hear(route, kept, parts.size() <= most);
      origin_ = {};
    });
  }

  /// Forgets a connection that has ended.
  void lose(std::uint64_t number) {
    const auto guest = guests_.extract(number);
    if (!guest) return;
    if (!guest.mapped()->has_spoken) counters_.add(Count::failed_connection);
    listening_.crowd().remove(number);
    (void)act([&] { peers_.lost(guest.mapped()->connection); });
  }

  void read_on() {
    for (auto& [number, guest] : guests_) guest->plug.resume();
  }

  /// Sets a timer for the next duty of the sessions.
  void watch_clock() {
    const auto duty = peers_.next_duty();
    if (!duty || (next_duty_ && *next_duty_ <= *duty)) return;
    next_duty_ = duty;
    queue_.after(*duty - scheduler_.now(), [this] {
      next_duty_.reset();
      (void)act([] {});
    });
  }

  // The functions below act for the sessions.

  ControlPeers::Origin origin() override { return origin_; }
  Sent send(const ControlPeers::Route& to, const std::vector<std::string>& parts) override {
    const auto guest = guests_.find(std::stoull(to));
    if (guest == guests_.end() || !guest->second->plug) return Sent::gone;
    return guest->second->plug.send(parts) ? Sent::yes : Sent::full;
  }
  void shut(const Connection& connection) override { shut_number(connection.number); }
  void shut_number(std::uint64_t number) {
    const auto guest = guests_.find(number);
    if (guest == guests_.end() || !guest->second->plug) return;
    guest->second->plug.close();
    queue_.post([this, number] { lose(number); });
  }
  void admitted(const Connection& connection) override {
    listening_.crowd().admitted(connection.number);
  }

  Scheduler& scheduler_;
  const Wires& wires_;
  const MachineId machine_;
  ProcessId process_;
  transport::ServerOptions options_;
  transport::ServerEvents events_;
  transport::Counters counters_;
  OwnQueue queue_;
  transport::LoopDelivery delivery_;
  ControlPeers peers_;
  ListeningEnd listening_;
  ControlPeers::Origin origin_;
  std::optional<transport::TimePoint> next_duty_;
  std::map<std::uint64_t, std::unique_ptr<Guest>> guests_;  // Keyed by connection number.
};

class SimulatedPublisher final : public transport::Publisher, private Listening {
 public:
  SimulatedPublisher(Wires& wires, const Wires::Party& who, transport::PublisherOptions options)
      : scheduler_(wires.scheduler()),
        process_(who.process),
        options_(std::move(options)),
        listening_(wires, who,
                   {Greeting::Kind::subscriber,
                    options_.link,
                    options_.keys,
                    options_.allowed,
                    counters_,
                    {}}) {}

  Status open() { return listening_.open(options_.endpoint, *this); }

  const std::string& endpoint() const override { return listening_.endpoint(); }
  const transport::Counters& counters() const override { return counters_; }

  void allow(transport::AllowList allowed) override {
    options_.allowed = std::move(allowed);
    std::erase_if(guests_, [this](const auto& entry) {
      if (options_.allowed.find(entry.second->key)) return false;
      listening_.crowd().remove(entry.first);
      return true;
    });
  }

  Status publish(Message event) override {
    event.ack = 0;
    event.seq = numbers_.next(event.run);
    auto frame = transport::encode_event(event);
    if (!frame) return frame.error();
    const Parts parts = {std::move(*frame)};
    if (bytes_of_parts(parts) > options_.link.queue_bytes)
      return Error{event.type + ": " + std::to_string(options_.link.queue) + " events or " +
                   size_text(options_.link.queue_bytes) + " wait to leave " + endpoint() +
                   " already"};
    if (!scheduler_.is_alive(process_)) return Done{};
    // A listener that lets too many wait misses this event.
    for (auto& [number, guest] : guests_)
      if (parts[0].starts_with(guest->topic)) guest->plug.send(parts);
    counters_.add(Count::sent);
    return Done{};
  }

 private:
  /// A listener.
  struct Guest final : Plugged {
    Guest(SimulatedPublisher& of, Plug own, const Greeting& greeting)
        : publisher(of),
          plug(std::move(own)),
          number(plug.number()),
          key(greeting.public_key),
          topic(greeting.topic) {}

    void hear(Parts) override {}
    void over(Over) override {
      publisher.listening_.crowd().remove(number);
      publisher.guests_.erase(number);
    }

    SimulatedPublisher& publisher;
    Plug plug;
    std::uint64_t number;
    std::string key, topic;
  };

  void accept(Plug plug, Parts hello) override {
    const auto greeting = listening_.welcome(plug, hello);
    if (!greeting) return;
    const auto connection = listening_.connection_of(plug);
    if (greeting->topic.size() > options_.topic_bytes) {
      counters_.add(Count::malformed);
      return counters_.add(Count::struck_off);
    }
    auto guest = std::make_unique<Guest>(*this, std::move(plug), *greeting);
    guest->plug.set_owner(*guest);
    guests_[connection.number] = std::move(guest);
    const auto too_many = listening_.add(connection);
    listening_.crowd().admitted(connection.number);
    for (const auto& [number, why] : too_many) guests_.erase(number);
  }

  Scheduler& scheduler_;
  ProcessId process_;
  transport::PublisherOptions options_;
  transport::Counters counters_;
  ListeningEnd listening_;
  transport::RunNumbers numbers_;
  std::map<std::uint64_t, std::unique_ptr<Guest>> guests_;  // Keyed by connection number.
};

}  // namespace

Result<std::unique_ptr<transport::ControlServer>> make_server(Wires& wires, const Wires::Party& who,
                                                              transport::ServerOptions options,
                                                              transport::ServerEvents events,
                                                              Loop& loop) {
  auto server =
      std::make_unique<SimulatedServer>(wires, who, std::move(options), std::move(events), loop);
  if (auto opened = server->open(); !opened) return opened.error();
  return std::unique_ptr<transport::ControlServer>(std::move(server));
}

Result<std::unique_ptr<transport::Publisher>> make_publisher(Wires& wires, const Wires::Party& who,
                                                             transport::PublisherOptions options) {
  auto publisher = std::make_unique<SimulatedPublisher>(wires, who, std::move(options));
  if (auto opened = publisher->open(); !opened) return opened.error();
  return std::unique_ptr<transport::Publisher>(std::move(publisher));
}

}  // namespace troupe::simulation
