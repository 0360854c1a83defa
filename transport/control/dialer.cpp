#include "transport/control/dialer.h"

#include "transport/control/dialing_end.h"

namespace troupe::transport {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int key_refused = 400;  // The status (ZAP) for a key that is not on the list.

/// Longer than the dialer keeps a socket whose connection has ended, in milliseconds.
constexpr int no_reconnect_before = 3'600'000;

/// Keeps what has arrived readable after the end of the connection. A socket that is "immediate",
/// or that ZeroMQ does not connect again, drops its unread messages when ZeroMQ notices the end.
void keep_unread_messages(zmq::socket_t& socket) {
  socket.set(zmq::sockopt::immediate, false);
  socket.set(zmq::sockopt::reconnect_ivl, no_reconnect_before);
}

}  // namespace

Dialer::Dialer(zmq::context_t& context, DialOptions options, zmq::socket_type type, Prepare prepare)
    : context_(context),
      options_(std::move(options)),
      type_(type),
      prepare_(std::move(prepare)),
      deadline_(Clock::now()),
      backoff_(options_.backoff, options_.seed) {}

Status Dialer::check() {
  auto endpoint = check_dialing(options_);
  if (!endpoint) return endpoint.error();
  endpoint_ = *endpoint;
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
  return link_ ? fail(not_connected::no_answer) : dial();
}

std::optional<Dialer::News> Dialer::dial() {
  // Connecting may take one timeout, and authentication another one.
  deadline_ = Clock::now() + 2 * options_.link.handshake;
  try {
    link_.emplace(context_, type_);
    set_link_options(link_->socket, options_.link, endpoint_);
    keep_unread_messages(link_->socket);
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
    case ZMQ_EVENT_CONNECTED:
      link_->reached = true;
      return std::nullopt;
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
      deadline_.reset();
      link_->connected = true;
      return News{What::connected, ""};
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
      return fail(event.value == key_refused ? not_connected::unknown_key
                                             : "the head does not admit this client now (" +
                                                   std::to_string(event.value) + ")");
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
      return fail(not_connected::no_head);
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
      return fail(options_.keys ? not_connected::other_head_key : not_connected::other_user_maybe);
    case ZMQ_EVENT_CLOSED:
    case ZMQ_EVENT_DISCONNECTED:
      if (!link_->connected)
        return fail(link_->reached ? not_connected::no_head_there : not_connected::nobody_listens);
      link_->ended = true;
      link_->connected = false;
      return News{What::ended, "the connection to " + options_.endpoint + " has ended"};
    default:
      return std::nullopt;
  }
}

}  // namespace troupe::transport
