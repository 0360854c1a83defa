#include "transport/control/dialer.h"

namespace troupe::transport {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* other_user_maybe =
    "the head hung up at once; without keys a head hears nobody but the user who started it, and "
    "this may be another one (`troupe keys new` makes keys for others)";
constexpr int unknown_key = 400;  // The ZAP status for a key that is not on the list.

}  // namespace

Dialer::Dialer(zmq::context_t& context, DialOptions options, zmq::socket_type type, Prepare prepare)
    : context_(context),
      options_(std::move(options)),
      type_(type),
      prepare_(std::move(prepare)),
      deadline_(Clock::now()),
      backoff_(options_.backoff, options_.seed) {}

Status Dialer::check() {
  auto endpoint = parse_endpoint(options_.endpoint);
  if (!endpoint) return endpoint.error();
  endpoint_ = *endpoint;
  if (endpoint_.kind == Endpoint::Kind::tcp && (endpoint_.port == 0 || endpoint_.host == "*"))
    return Error{options_.endpoint + ": wanted the host and the port of a head to dial"};
  if (auto safe = check_security(endpoint_, options_.keys, options_.link.plain); !safe) return safe;
  if (options_.keys && !is_key(options_.head_key))
    return Error{options_.endpoint +
                 ": the head's public key is missing or is no key; the head "
                 "prints it when it starts"};
  return Done{};
}

void Dialer::wait_for_news(std::vector<zmq_pollitem_t>& items) {
  if (link_) items.push_back({link_->monitor->socket().handle(), 0, ZMQ_POLLIN, 0});
}

std::chrono::milliseconds Dialer::patience() const { return until(deadline_, Clock::now()); }

std::optional<Dialer::News> Dialer::next() {
  while (link_ && !link_->ended) {
    const auto event = link_->monitor->next();
    if (!event) break;
    if (auto news = follow(*event)) return news;
  }
  if (!deadline_ || Clock::now() < *deadline_) return std::nullopt;
  return link_ ? fail("nobody answered in time") : dial();
}

std::optional<Dialer::News> Dialer::dial() {
  // Connecting may take one timeout, and authentication another one.
  deadline_ = Clock::now() + 2 * options_.link.handshake;
  try {
    link_.emplace(context_, type_);
    set_link_options(link_->socket, options_.link, endpoint_);
    ask_far_end(link_->socket, options_.link);
    set_client_keys(link_->socket, options_.keys, options_.head_key);
    prepare_(link_->socket);
    link_->monitor.emplace(context_, link_->socket);
    link_->socket.connect(to_string(endpoint_));
  } catch (const zmq::error_t& error) {
    return fail(error.what());
  }
  return std::nullopt;
}

Dialer::News Dialer::fail(const std::string& why) {
  hang_up();
  return {What::failed, options_.endpoint + ": " + why};
}

void Dialer::hang_up() {
  link_.reset();
  deadline_ = Clock::now() + backoff_.next();
}

std::optional<Dialer::News> Dialer::follow(const Monitor::Event& event) {
  switch (event.what) {
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
      deadline_.reset();
      link_->connected = true;
      return News{What::connected, ""};
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
      return fail(event.value == unknown_key
                      ? "the head does not know our key; its list of hosts must have it"
                      : "the head does not let us in now (" + std::to_string(event.value) + ")");
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
      return fail("what answers there is no head, or it wants keys where we have none");
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
      return fail(options_.keys
                      ? "the connection ended before both ends knew each other; the head's key may "
                        "be another one"
                      : other_user_maybe);
    case ZMQ_EVENT_CLOSED:
    case ZMQ_EVENT_DISCONNECTED:
      if (!link_->connected) return fail("nobody listens there");
      link_->ended = true;
      link_->connected = false;
      return News{What::ended, "the connection to " + options_.endpoint + " has ended"};
    default:
      return std::nullopt;
  }
}

}  // namespace troupe::transport
