#include "apps/client/which_head.h"

#include <netdb.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <utility>

#include "apps/client/head_address.h"
#include "core/json.h"
#include "transport/control/endpoint.h"

namespace troupe::apps {

void WhichHead::add_to(CLI::App& command) {
  command.add_option(
      "--head", address,
      "address of the head (default: TROUPE_HEAD, the head of this folder or one above, or the "
      "head last started on this machine)");
  keys.add_to(command);
}

namespace {

/// Returns why a head on another machine cannot be dialed. A name that no machine has comes first:
/// it may be a typing error.
Status check_reach(const transport::DialOptions& options) {
  const auto endpoint = transport::parse_endpoint(options.endpoint);
  if (!endpoint || options.keys || transport::is_local(*endpoint)) return Done{};
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  const int failure = getaddrinfo(endpoint->host.c_str(), nullptr, &wanted, &found);
  if (found) freeaddrinfo(found);
  if (failure != 0)
    return Error{options.endpoint + ": no machine was found by the name '" + endpoint->host +
                 "': " + gai_strerror(failure)};
  return Error{options.endpoint +
               ": a head on another machine is reached with keys; give --keys and --head-key"};
}

}  // namespace

Result<transport::DialOptions> WhichHead::options() const {
  const auto endpoint = find_head(address);
  if (!endpoint) return endpoint.error();
  auto options = keys.dial(*endpoint);
  if (!options) return options;
  if (auto reached = check_reach(*options); !reached) return reached.error();
  return options;
}

Result<std::unique_ptr<HeadClient>> WhichHead::dial(const CommonFlags& flags) const {
  const auto options = this->options();
  if (!options) return options.error();
  auto client =
      HeadClient::dial(*options, flags.quiet ? TellWait() : wait_on_stderr(options->endpoint));
  if (client) return client;
  const auto known = known_head(address);
  if (!known || known->file.empty()) return client;
  return Error{client.error().text + " (its address is from " + known->file +
               "; --head ADDRESS names another one)"};
}

Result<transport::DialOptions> WhichHead::events_of(const HeadClient& client) const {
  auto options = this->options();
  if (options) options->endpoint = client.events();
  return options;
}

ExitCode no_head(const Error& error) { return complain(ExitCode::no_head, "error: " + error.text); }

ExitCode refused(const Refusal& refusal) {
  // Configuration diagnostics already contain "error: " and a place each.
  const bool is_marked = refusal.text.find("error: ") != std::string::npos;
  return complain(refusal.code == RefusalCode::invalid ? ExitCode::invalid : ExitCode::failed,
                  (is_marked ? "" : "error: ") + refusal.text);
}

ExitCode ask(const WhichHead& head, transport::MessageName type, Value body,
             const CommonFlags& flags, const std::function<void(const Value&)>& plainly) {
  auto client = head.dial(flags);
  if (!client) return no_head(client.error());
  const auto answer = (*client)->ask(type, std::move(body));
  if (!answer) return refused(answer.refusal());
  if (flags.output == "json")
    std::puts(to_json(*answer).c_str());
  else
    plainly(*answer);
  return ExitCode::done;
}

}  // namespace troupe::apps
