#include "transport/control/zap.h"

#include <zmq.h>

#include <array>
#include <cstdint>

namespace troupe::transport {
namespace {

// The parts of a question. What follows depends on the mechanism.
enum Part : std::size_t {
  version,
  request_id,
  domain,
  address,
  routing_id,
  mechanism,
  credentials
};
constexpr std::size_t least_frames = 6;
constexpr std::size_t raw_key = 32;

}  // namespace

ZapAnswer answer_zap(const std::vector<std::string>& question, const AllowList& allowed) {
  if (question.size() < least_frames || question[version] != "1.0") return {};
  ZapAnswer answer;
  answer.address = question[address];
  std::string user;
  if (question[domain] != zap_domain) {
    answer.refused = "asked for another socket";
  } else if (question[mechanism] == "CURVE") {
    std::array<char, 41> key{};
    const bool whole = question.size() > credentials && question[credentials].size() == raw_key;
    if (whole)
      zmq_z85_encode(key.data(),
                     reinterpret_cast<const std::uint8_t*>(question[credentials].data()), raw_key);
    if (whole && allowed.find(key.data()))
      user = key.data();
    else
      answer.refused = "the key " + std::string(key.data()) + " is not on the list of hosts";
  } else if (question[mechanism] != "NULL") {
    answer.refused = "speaks " + question[mechanism].substr(0, 20) + ", wanted CURVE";
  }
  const bool let_in = answer.refused.empty();
  answer.parts = {
      "1.0", question[request_id], let_in ? "200" : "400", let_in ? "OK" : "not on the list", user,
      ""};
  return answer;
}

}  // namespace troupe::transport
