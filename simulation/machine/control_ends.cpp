#include <charconv>

#include "simulation/machine/sockets.h"
#include "transport/control/dialing_end.h"

namespace troupe::simulation {

namespace reasons = transport::not_connected;

namespace {

/// The user of all simulated processes.
constexpr uid_t only_user = 1000;

std::string to_part_of_time(std::chrono::nanoseconds time) { return std::to_string(time.count()); }

std::chrono::nanoseconds time_of(const std::string& part) {
  std::int64_t count = 0;
  std::from_chars(part.data(), part.data() + part.size(), count);
  return std::chrono::nanoseconds(count);
}

}  // namespace

Parts Greeting::parts() const {
  return {kind == Kind::client ? "client" : "subscriber",
          public_key,
          head_key,
          to_part_of_time(silence),
          to_part_of_time(ask_every),
          topic};
}

std::optional<Greeting> Greeting::read(const Parts& parts) {
  if (parts.size() != 6 || (parts[0] != "client" && parts[0] != "subscriber")) return std::nullopt;
  return Greeting{parts[0] == "client" ? Kind::client : Kind::subscriber,
                  parts[1],
                  parts[2],
                  time_of(parts[3]),
                  time_of(parts[4]),
                  parts[5]};
}

// ListeningEnd

Status ListeningEnd::open(const std::string& text, Listening& owner) {
  const auto endpoint = transport::parse_endpoint(text);
  if (!endpoint) return endpoint.error();
  if (auto safe = transport::check_security(*endpoint, options_.keys, options_.link.plain); !safe)
    return safe;
  auto bound = wires_.listen(who_, *endpoint, owner);
  if (!bound) return bound.error();
  place_ = std::move(bound->place);
  endpoint_ = transport::to_string(bound->endpoint);
  return Done{};
}

std::optional<Greeting> ListeningEnd::welcome(Plug& plug, const Parts& hello) {
  auto greeting = Greeting::read(hello);
  const auto refusal = greeting && greeting->kind == options_.kind ? refusal_of(plug, *greeting)
                                                                   : std::string(reasons::no_head);
  plug.send({refusal}, Plug::Traced::no);
  if (!refusal.empty()) {
    plug.close(Plug::Rest::arrives);
    return std::nullopt;
  }
  plug.set_high_water(static_cast<std::size_t>(options_.link.high_water));
  plug.set_patience({.silence = greeting->silence,
                     .slack = greeting->ask_every,
                     .needs_process = true,
                     .needs_answers = false});
  return greeting;
}

std::string ListeningEnd::refusal_of(const Plug& plug, const Greeting& greeting) {
  if (!options_.keys) return greeting.public_key.empty() ? "" : reasons::no_head;
  if (greeting.public_key.empty()) return reasons::no_head;
  if (greeting.head_key != options_.keys->public_key) return reasons::other_head_key;
  if (options_.allowed.find(greeting.public_key)) return "";
  options_.counters.add(transport::Count::unknown_key);
  tell_refused(plug.far_end(), "the key " + greeting.public_key + " is not on the allow list");
  return reasons::unknown_key;
}

transport::Connection ListeningEnd::connection_of(const Plug& plug) const {
  transport::Connection connection;
  connection.number = plug.number();
  connection.far_end = plug.far_end();
  if (!options_.keys && plug.stays_here()) connection.user = only_user;
  return connection;
}

std::vector<transport::Crowd::TooMany> ListeningEnd::add(const transport::Connection& connection) {
  auto too_many = crowd_.add(connection.number, connection.far_end);
  for (const auto& [number, why] : too_many) {
    options_.counters.add(transport::Count::crowded_out);
    tell_refused(connection.far_end, why);
  }
  return too_many;
}

void ListeningEnd::tell_refused(const std::string& address, const std::string& why) {
  if (options_.refused && telling_.admit(transport::host_of(address), wires_.scheduler().now()))
    options_.refused(address, why);
}

// DialingEnd

DialingEnd::DialingEnd(Wires& wires, const Wires::Party& who, transport::DialOptions options,
                       Greeting greeting)
    : wires_(wires),
      who_(who),
      options_(std::move(options)),
      greeting_(std::move(greeting)),
      backoff_(options_.backoff, options_.seed),
      queue_(wires.scheduler(), who.process, "dialing end") {
  if (options_.keys) greeting_.public_key = options_.keys->public_key;
  greeting_.head_key = options_.head_key;
  // ZeroMQ counts it in tenths of a second.
  greeting_.silence = std::max(options_.link.silence, std::chrono::milliseconds(100));
  greeting_.ask_every = options_.link.ask_every;
}

Status DialingEnd::check() {
  auto endpoint = transport::check_dialing(options_);
  if (!endpoint) return endpoint.error();
  endpoint_ = *endpoint;
  return Done{};
}

void DialingEnd::dial() {
  // Connecting may take one timeout, and authentication another one.
  timer_ = queue_.after(2 * options_.link.handshake, [this] { fail(reasons::no_answer); });
  plug_ = wires_.dial(who_, endpoint_, *this, greeting_.parts());
}

void DialingEnd::hang_up() {
  is_connected_ = false;
  plug_.close();
  queue_.cancel(timer_);
  timer_ = queue_.after(backoff_.next(), [this] { dial(); });
}

void DialingEnd::fail(const std::string& why) {
  hang_up();
  failed(options_.endpoint + ": " + why);
}

void DialingEnd::hear(Parts parts) {
  if (is_connected_) return heard(parts);
  if (!parts[0].empty()) return fail(parts[0]);
  queue_.cancel(timer_);
  is_connected_ = true;
  plug_.set_high_water(static_cast<std::size_t>(options_.link.high_water));
  plug_.set_patience({.silence = options_.link.silence,
                      .slack = options_.link.ask_every,
                      .needs_process = true,
                      .needs_answers = true});
  connected();
}

void DialingEnd::over(Over why) {
  if (is_connected_) {
    is_connected_ = false;
    return ended("the connection to " + options_.endpoint + " has ended");
  }
  if (why == Over::refused) return fail(reasons::nobody_listens);
  fail(options_.keys ? reasons::other_head_key : reasons::other_user_maybe);
}

}  // namespace troupe::simulation
