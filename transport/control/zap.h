#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transport/control/allow_list.h"

/// Authentication: ZeroMQ asks for every new connection whether it gets in (ZAP, RFC 27). Without
/// an answer CURVE would accept every key.
namespace troupe::transport {

/// The name of our sockets in ZeroMQ's questions.
constexpr std::string_view zap_domain = "troupe";

struct ZapAnswer {
  std::vector<std::string> parts;  // The parts of the answer; empty if the question is malformed.
  std::string refused;             // The reason of a refusal; empty if the peer gets in.
  std::string address;             // The address of the peer.
};

/// A plain connection gets in, since the bound address decides where it may come from. A connection
/// under CURVE gets in if its key is on the list. ZeroMQ then reports the key as its user id.
ZapAnswer answer_zap(const std::vector<std::string>& question, const AllowList& allowed);

}  // namespace troupe::transport
