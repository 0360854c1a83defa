#include "transport/control/dialing_end.h"

#include <utility>

#include "transport/control/publisher.h"
#include "transport/wire/message_types.h"
#include "transport/wire/refusal.h"

namespace troupe::transport {
namespace {

/// A connection with this many bad messages is ended.
constexpr int most_bad_messages = 10;
constexpr std::size_t most_runs = 4096;

}  // namespace

Result<Endpoint> check_dialing(const DialOptions& options) {
  auto endpoint = parse_endpoint(options.endpoint);
  if (!endpoint) return endpoint;
  if (endpoint->kind == Endpoint::Kind::tcp && (endpoint->port == 0 || endpoint->host == "*"))
    return Error{options.endpoint + ": wanted the host and the port of a head to dial"};
  if (auto safe = check_security(*endpoint, options.keys, options.link.plain); !safe)
    return safe.error();
  if (options.keys && !is_key(options.head_key))
    return Error{options.endpoint +
                 ": the head's public key is missing or is no key; the head "
                 "prints it when it starts"};
  return endpoint;
}

HeadMessages::Verdict HeadMessages::hear(const std::vector<std::string_view>& parts,
                                         bool all_kept) {
  auto message = all_kept ? decode(parts)
                          : Error{"found a message of more than " +
                                  std::to_string(most_parts_of_message - 1) + " parts"};
  if (!message) return bad(Count::malformed, message.error().text);
  if (!find_message_type(message->type)) {
    counters_.add(Count::unknown_type);
    Message answer = to_message(
        refusal(RefusalCode::unsupported, "type",
                "this process has no handler for messages of type '" + message->type + "'"));
    answer.re = message->id;
    return {What::unknown, std::move(answer), {}, {}};
  }
  if (!may_send({Role::head}, message->type))
    return bad(Count::wrong_role, message->type + ": a head does not say this");
  counters_.add(Count::received);
  return {What::good, std::move(*message), {}, {}};
}

HeadMessages::Verdict HeadMessages::bad(Count count, const std::string& why) {
  counters_.add(count);
  Verdict verdict{What::bad, {}, {}, {}};
  if (bad_messages_++ == 0) verdict.why = why;
  if (bad_messages_ < most_bad_messages) return verdict;
  counters_.add(Count::struck_off);
  verdict.what = What::too_bad;
  verdict.end =
      "it sent " + std::to_string(most_bad_messages) + " bad messages; the last was: " + why;
  return verdict;
}

MissedEvents::MissedEvents(const std::string& topic)
    : is_whole_(topic.empty() || topic.ends_with('/')) {}

std::uint64_t MissedEvents::before(const Message& event) {
  if (!is_whole_) return 0;
  const auto [last, is_first] = last_.emplace(event.run, event.seq);
  // A number that goes back comes from another head.
  const auto missed = !is_first && event.seq > last->second + 1 ? event.seq - last->second - 1 : 0;
  last->second = event.seq;
  if (last_.size() > most_runs) last_.clear();
  return missed;
}

}  // namespace troupe::transport
