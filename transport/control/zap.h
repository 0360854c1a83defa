#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transport/control/allow_list.h"

/// Who gets in: ZeroMQ asks for every new connection (ZAP, RFC 27). Without an answer CURVE would
/// let in any key.
namespace troupe::transport {

/// What a socket is called when ZeroMQ asks.
constexpr std::string_view zap_domain = "troupe";

struct ZapAnswer {
  std::vector<std::string> parts;  // To send back; empty where the question was none.
  std::string refused;             // Why somebody does not get in; empty where it does.
  std::string address;             // Whose.
};

/// A plain connection gets in: where it may come from was decided when the socket was bound. One
/// under CURVE gets in if its key is on the list, and the key is then its user id.
ZapAnswer answer_zap(const std::vector<std::string>& question, const AllowList& allowed);

}  // namespace troupe::transport
