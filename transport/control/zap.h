#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transport/control/allow_list.h"

/// Decides who is admitted: ZeroMQ asks for every new connection (ZAP, RFC 27). Without an answer
/// CURVE would admit any key.
namespace troupe::transport {

/// The name of our sockets in ZeroMQ's questions.
constexpr std::string_view zap_domain = "troupe";

struct ZapAnswer {
  std::vector<std::string> parts;  // The reply; empty if the question was invalid.
  std::string refused;             // The reason of a refusal; empty if admitted.
  std::string address;             // The peer's address.
};

/// Answers a question. A plain connection is admitted, since binding decided from where it may
/// come. A CURVE connection is admitted if its key is on the list; the key becomes its user id.
ZapAnswer answer_zap(const std::vector<std::string>& question, const AllowList& allowed);

}  // namespace troupe::transport
