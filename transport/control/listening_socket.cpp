#include "transport/control/listening_socket.h"

#include <utility>

#include "transport/control/zap.h"

namespace troupe::transport {
ListeningSocket::ListeningSocket(const Options& options, Refused refused)
    : options_(options), refused_(std::move(refused)), telling_(limit_of_refusals()) {}

ListeningSocket::~ListeningSocket() {
  if (!bound_.empty()) remove_socket_file(bound_);
}

Status ListeningSocket::open(zmq::socket_type type,
                             const std::function<void(zmq::socket_t&)>& prepare) {
  const auto endpoint = parse_endpoint(options_.endpoint);
  if (!endpoint) return endpoint.error();
  if (auto safe = check_security(*endpoint, options_.keys, options_.link.plain); !safe) return safe;
  try {
    zap_ = zap_socket(context_);
    socket_ = zmq::socket_t(context_, type);
    set_link_options(socket_, options_.link, *endpoint);
    let_system_ask(socket_);
    set_server_keys(socket_, options_.keys);
    prepare(socket_);
    // A plain connection proves no identity except by its local user.
    const bool is_checked =
        !options_.keys && options_.link.plain == LinkOptions::Plain::within_machine;
    connections_.emplace(context_, socket_, options_.link.crowd,
                         is_checked ? Connections::Whose::own_user : Connections::Whose::anybody);
    auto bound = bind_socket(socket_, *endpoint);
    if (!bound) return bound.error();
    bound_ = *bound;
  } catch (const zmq::error_t& error) {
    return Error{options_.endpoint + ": " + error.what()};
  }
  return Done{};
}

std::vector<zmq_pollitem_t> ListeningSocket::items() {
  return {{socket_.handle(), 0, ZMQ_POLLIN, 0},
          {connections_->socket().handle(), 0, ZMQ_POLLIN, 0},
          {zap_.handle(), 0, ZMQ_POLLIN, 0}};
}

void ListeningSocket::let_in(Counters& counters) {
  while (answer_next(zap_, options_.allowed, [&](const ZapAnswer& answer) {
    counters.add(Count::unknown_key);
    tell_refused(answer.address, answer.refused);
  })) {
  }
}

void ListeningSocket::tell_refused(const std::string& address, const std::string& why) {
  if (refused_ && telling_.admit(host_of(address), std::chrono::steady_clock::now()))
    refused_(address, why);
}

}  // namespace troupe::transport
