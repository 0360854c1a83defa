#include "apps/page/status_page.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/client/head_tables.h"
#include "apps/client/which_head.h"
#include "apps/page/metrics.h"
#include "apps/page/page_files.h"
#include "apps/page/run_about.h"
#include "core/json.h"
#include "core/text.h"
#include "transport/control/endpoint.h"

namespace troupe::apps {
namespace {

using Clock = std::chrono::steady_clock;

// An answer is used for this long, whoever asks.
constexpr auto fresh = std::chrono::seconds(1);
// A long history is read by and by, so that other visitors wait less.
constexpr int pages_at_once = 32;
constexpr std::size_t most_histories = 32;
constexpr std::size_t most_runs_at_once = 8;
// An answer that changes seldom is used for longer.
constexpr auto fresh_about = std::chrono::seconds(5);

/// The page runs its own script, uses its own styles, and asks its own head.
constexpr const char* policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

template <class Body>
HttpAnswer response(const std::string& status, const std::string& type, Body body) {
  return http_answer(
      status, type, std::move(body),
      std::string("Referrer-Policy: no-referrer\r\nContent-Security-Policy: ") + policy + "\r\n");
}

HttpAnswer ok(const std::string& type, SharedText body) {
  return response("200 OK", type, std::vector{std::move(body)});
}
HttpAnswer ok(const std::string& type, std::string body) {
  return response("200 OK", type, std::move(body));
}

SharedText shared(std::string text) { return std::make_shared<const std::string>(std::move(text)); }

HttpAnswer not_found() {
  return response<std::string>("404 Not Found", "text/plain",
                               "there are /, /metrics, /healthz, /api/look, /api/status, "
                               "/api/runs/NAME, /api/runs/NAME/about and "
                               "/api/runs/NAME/config\n");
}

}  // namespace

std::string page_of(const Value& status) {
  constexpr std::string_view place = "@plain@";
  std::string page(page_html());
  const auto at = page.find(place);
  return page.replace(at, place.size(), escaped(nodes_table(status) + "\n" + runs_table(status)));
}

StatusPage::StatusPage(storage::Files& files, Status status, Numbers numbers)
    : files_(files), status_(std::move(status)), numbers_(std::move(numbers)) {}

Result<std::unique_ptr<StatusPage>> StatusPage::listen(const std::string& address,
                                                       storage::Files& files, Status status,
                                                       Numbers numbers) {
  const auto endpoint = transport::parse_endpoint("tcp://" + address);
  if (!endpoint) return endpoint.error();
  if (!transport::is_local(*endpoint))
    return Error{"--http " + address +
                 ": wanted an address of this machine alone, such as 127.0.0.1:4702: a page asks "
                 "for no keys; ssh -L brings it elsewhere, and --metrics ADDRESS the metrics"};
  std::unique_ptr<StatusPage> page(new StatusPage(files, std::move(status), std::move(numbers)));
  auto server = HttpServer::listen(address, "status page", [&page = *page](const auto& request) {
    return page.answer_to(request);
  });
  if (!server) return within("--http " + address, server.error());
  page->server_ = std::move(*server);
  return page;
}

HttpAnswer StatusPage::answer_to(const HttpRequest& request) {
  if (!asks_this_machine(request))
    return response<std::string>(
        "403 Forbidden", "text/plain",
        "this page answers to localhost, 127.0.0.1 and [::1] alone: ask for it by one "
        "of these; ssh -L brings it to another machine\n");
  return answer_about(request);
}

HttpAnswer StatusPage::answer_about(const HttpRequest& request) {
  constexpr std::string_view of_runs = "/api/runs/";
  const auto path = request.path();
  if (path == "/") return ok("text/html", page_of(status_()));
  if (path == "/page.css") return ok("text/css", std::string(page_css()));
  for (const auto& script : page_scripts())
    if (path.substr(1) == script.name) return ok("text/javascript", std::string(script.text));
  if (path == "/metrics") return ok("text/plain; version=0.0.4", metrics_of(status_(), numbers_()));
  if (path == "/healthz") return (void)status_(), ok("text/plain", "ok\n");
  if (path == "/api/status") return ok("application/json", status_text());
  if (path == "/api/look") return answer_look(request);
  return path.starts_with(of_runs) ? answer_about_run(path.substr(of_runs.size())) : not_found();
}

/// Returns the status and the histories of the runs that the request names. Pages look often, so
/// they get all in one answer.
HttpAnswer StatusPage::answer_look(const HttpRequest& request) {
  const auto named = request.parameters("run");
  const std::set<std::string> names(named.begin(), named.end());
  if (names.size() > most_runs_at_once)
    return response<std::string>("400 Bad Request", "text/plain",
                                 "wanted at most " + std::to_string(most_runs_at_once) +
                                     " runs, found " + std::to_string(names.size()) + "\n");
  std::vector<SharedText> parts = {shared("{\"status\":"), status_text()};
  std::string before = ",\"histories\":{";
  for (const auto& name : names) {
    if (!is_run(name)) continue;
    parts.push_back(shared(std::exchange(before, ",") + to_json(name) + ":"));
    parts.push_back(history_text(name));
  }
  parts.push_back(shared((before == "," ? "" : before) + "}}"));
  return response("200 OK", "application/json", std::move(parts));
}

/// `asked` is "NAME", "NAME/about" or "NAME/config".
HttpAnswer StatusPage::answer_about_run(const std::string& asked) {
  const auto end = asked.find('/');
  const auto name = asked.substr(0, end);
  const auto part = end == asked.npos ? std::string() : asked.substr(end + 1);
  (void)status_text();
  if (!is_run(name)) return not_found();
  if (part.empty()) return ok("application/json", history_text(name));
  if (part == "about") return ok("application/json", about_text(name));
  if (part != "config") return not_found();
  const auto text = config_of_run(files_, "runs/" + name);
  return text.empty() ? not_found() : ok("text/plain", text);
}

SharedText StatusPage::status_text() {
  const auto now = Clock::now();
  if (!newest_text_.made || now - *newest_text_.made >= fresh) {
    newest_ = status_();
    newest_text_ = {shared(to_json(newest_)), now};
  }
  return newest_text_.text;
}

/// Returns whether the newest status has a run of this name. A name becomes part of a path, so only
/// the names of runs may be used.
bool StatusPage::is_run(const std::string& name) const {
  const auto& runs = list_in(newest_, "runs");
  return !name.empty() &&
         std::ranges::any_of(runs, [&](const Value& run) { return text_of(run, "name") == name; });
}

StatusPage::KeptRun& StatusPage::kept(const std::string& run) {
  const auto now = Clock::now();
  auto known = runs_.find(run);
  if (known == runs_.end()) {
    if (runs_.size() >= most_histories)
      runs_.erase(std::ranges::min_element(runs_, {},
                                           [](const auto& entry) { return entry.second.asked; }));
    known = runs_
                .emplace(run,
                         KeptRun{HistoryFile(files_, "runs/" + run + "/events.jsonl"), {}, {}, now})
                .first;
  }
  known->second.asked = now;
  return known->second;
}

SharedText StatusPage::about_text(const std::string& run) {
  auto& answer = kept(run).about;
  const auto now = Clock::now();
  if (!answer.made || now - *answer.made >= fresh_about)
    answer = {shared(to_json(about_run(files_, "runs/" + run))), now};
  return answer.text;
}

SharedText StatusPage::history_text(const std::string& run) {
  auto& [history, answer, about, asked] = kept(run);
  const auto now = Clock::now();
  if (!answer.made || now - *answer.made >= fresh) {
    (void)history.read_on(pages_at_once);
    answer = {shared(history.json()), now};
  }
  return answer.text;
}

}  // namespace troupe::apps
