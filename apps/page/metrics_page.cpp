#include "apps/page/metrics_page.h"

#include <string_view>
#include <utility>

#include "apps/page/metrics.h"
#include "transport/channels/socket.h"

namespace troupe::apps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kept_for = std::chrono::milliseconds(500);

bool is_local(const std::string& address) {
  const auto where = transport::tcp_address(address);
  return where && transport::is_loopback(*where);
}

}  // namespace

Result<MetricsAccess> metrics_access(const MetricsOptions& options) {
  const std::string option = "--metrics " + options.address;
  if (const auto where = transport::tcp_address(options.address); !where)
    return within("--metrics", where.error());
  if (!options.token_file.empty()) {
    if (options.without_token)
      return Error{
          "--metrics-token-file and --metrics-without-token exclude each other; give one of them"};
    auto token = transport::AccessToken::read(options.token_file);
    if (!token) return within("--metrics-token-file", token.error());
    return MetricsAccess{options.address, std::move(*token)};
  }
  if (!is_local(options.address) && !options.without_token)
    return Error{option +
                 ": everybody on the network could read the metrics; give --metrics-token-file "
                 "FILE, or --metrics-without-token if the network is private"};
  return MetricsAccess{options.address, {}};
}

MetricsPage::MetricsPage(MetricsAccess access, Status status, Numbers numbers)
    : access_(std::move(access)),
      is_local_(is_local(access_.address)),
      status_(std::move(status)),
      numbers_(std::move(numbers)) {}

Result<std::unique_ptr<MetricsPage>> MetricsPage::listen(MetricsAccess access, Status status,
                                                         Numbers numbers) {
  const std::string address = access.address;
  std::unique_ptr<MetricsPage> page(
      new MetricsPage(std::move(access), std::move(status), std::move(numbers)));
  auto server = HttpServer::listen(
      address, "metrics", [&page = *page](const auto& request) { return page.answer_to(request); });
  if (!server) return within("--metrics " + address, server.error());
  page->server_ = std::move(*server);
  return page;
}

bool MetricsPage::may_read(const HttpRequest& request) const {
  if (!access_.token) return true;
  constexpr std::string_view scheme = "Bearer ";
  const auto given = request.header("authorization").value_or("");
  return given.starts_with(scheme) &&
         access_.token->is(std::string_view(given).substr(scheme.size()));
}

HttpAnswer MetricsPage::answer_to(const HttpRequest& request) {
  // Browsers of this machine carry requests of foreign pages to it; a token protects from them.
  if (is_local_ && !access_.token && !asks_this_machine(request))
    return http_answer("403 Forbidden", "text/plain",
                       "without a token the metrics are for localhost, 127.0.0.1 and [::1]\n");
  const auto path = request.path();
  if (path != "/metrics" && path != "/healthz")
    return http_answer("404 Not Found", "text/plain", "there are /metrics and /healthz\n");
  if (path == "/metrics" && !may_read(request))
    return http_answer("401 Unauthorized", "text/plain",
                       "the metrics want the header \"Authorization: Bearer TOKEN\" with the token "
                       "of the head's --metrics-token-file\n",
                       "WWW-Authenticate: Bearer\r\n");
  const auto now = Clock::now();
  // Asking for the status shows that the head does not hang.
  if (!made_ || now - *made_ >= kept_for) {
    text_ = std::make_shared<const std::string>(metrics_of(status_(), numbers_()));
    made_ = now;
  }
  return path == "/healthz"
             ? http_answer("200 OK", "text/plain", "ok\n")
             : http_answer("200 OK", "text/plain; version=0.0.4", std::vector{text_});
}

}  // namespace troupe::apps
