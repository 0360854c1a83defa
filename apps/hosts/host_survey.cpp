#include "apps/hosts/host_survey.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "apps/hosts/children.h"
#include "apps/hosts/ssh.h"
#include "core/json.h"
#include "core/printable.h"

namespace troupe::apps {
namespace {

constexpr auto doctor_patience = std::chrono::seconds(60);
constexpr auto link_patience = std::chrono::seconds(60);
// A small number, since this machine's processors serve each connection.
constexpr std::size_t pairs_at_once = 8;

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool is_event(const Value& event, std::string_view type) {
  const Value* value = event.find("type");
  return value && value->text() && *value->text() == type;
}

/// The output of one machine so far.
struct Visit {
  std::optional<HostReport> report;
  std::string error_output;
  std::string misread;
};

void hear(const Host& host, const std::string& line, Visit& visit, const OnCheck& on_check) {
  auto event = parse_json(line);
  if (!event) return;  // The line is a greeting of the machine's shell.
  make_printable(*event);
  if (is_event(*event, "check")) return on_check(host.name, from_event(*event));
  if (!is_event(*event, "host")) return;
  auto report = report_from(*event);
  if (!report) {
    visit.misread = report.error().text;
    return;
  }
  report->host = host.name;
  report->ahead = report->wall - wall_seconds();
  visit.report = std::move(*report);
}

/// A measurement between two machines. The second machine listens; once it has reported its
/// address, the first one connects.
class PairVisit {
 public:
  PairVisit(const HostReport& from, const HostReport& to, const RemotePlace& place,
            Children& children)
      : from_(from), to_(to), place_(place), children_(children) {}

  void start() {
    children_.start({.words = over_ssh(to_.host),
                     .input = script_to_run(place_, {"bench", "link", "--listen", to_.address}),
                     .patience = link_patience,
                     .on_line =
                         [this](ChildOrder::Stream stream, const std::string& line) {
                           stream == ChildOrder::Stream::out ? ask(line) : complain(line);
                         },
                     .on_end = {}});
  }

  LinkFound found() && { return {from_.host, to_.host, std::move(figures_)}; }

 private:
  void ask(const std::string& address) {
    if (std::exchange(asked_, true)) return;
    children_.start({.words = over_ssh(from_.host),
                     .input = script_to_run(place_, {"bench", "link", address, "--output", "json"}),
                     .patience = link_patience,
                     .on_line =
                         [this](ChildOrder::Stream stream, const std::string& line) {
                           stream == ChildOrder::Stream::out ? learn(line) : complain(line);
                         },
                     .on_end = {}});
  }

  void learn(const std::string& line) {
    const auto event = parse_json(line);
    const Value* latency = event ? event->find("latency") : nullptr;
    const Value* bandwidth = event ? event->find("bandwidth") : nullptr;
    if (latency && latency->is_number() && bandwidth && bandwidth->is_number())
      figures_ = bench::LinkFigures{latency->number(), bandwidth->number()};
  }

  void complain(const std::string& line) {
    if (!figures_) figures_ = Error{printable(line.starts_with("error: ") ? line.substr(7) : line)};
  }

  const HostReport& from_;
  const HostReport& to_;
  const RemotePlace& place_;
  Children& children_;
  bool asked_ = false;
  Result<bench::LinkFigures> figures_ =
      Error{"no answer within " + std::to_string(link_patience.count()) + " s"};
};

}  // namespace

std::vector<HostReport> survey_hosts(const std::vector<Host>& hosts, const RemotePlace& place,
                                     const OnCheck& on_check) {
  std::vector<Visit> visits(hosts.size());
  Children children;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const Host& host = hosts[i];
    Visit& visit = visits[i];
    children.start(
        {.words = over_ssh(host.name),
         .input = script_to_run(place, {"doctor", "--output", "json"}),
         .patience = doctor_patience,
         .on_line =
             [&](ChildOrder::Stream stream, const std::string& line) {
               if (stream == ChildOrder::Stream::out)
                 hear(host, line, visit, on_check);
               else
                 visit.error_output += line + "\n";
             },
         .on_end =
             [&](int code) {
               Check reached = judge_reached(host.name, code, visit.error_output, place);
               if (reached.verdict == Verdict::ok && !visit.report)
                 reached = {
                     "ssh", Verdict::fail,
                     visit.misread.empty() ? "its `troupe doctor` reported nothing" : visit.misread,
                     "install the same version there, or say where it is: --program PATH"};
               on_check(host.name, reached);
             }});
  }
  children.wait();
  std::vector<HostReport> reports;
  for (auto& visit : visits)
    if (visit.report) reports.push_back(std::move(*visit.report));
  return reports;
}

std::vector<LinkFound> survey_links(const std::vector<HostReport>& reports,
                                    const RemotePlace& place) {
  std::vector<LinkFound> found;
  for (const auto& round : rounds_of_pairs(reports.size()))
    for (std::size_t begin = 0; begin < round.size(); begin += pairs_at_once) {
      Children children;
      std::vector<std::unique_ptr<PairVisit>> visits;
      for (std::size_t i = begin; i < std::min(begin + pairs_at_once, round.size()); ++i) {
        const auto& [from, to] = round[i];
        if (reports[from].address.empty() || reports[to].address.empty()) continue;
        visits.push_back(std::make_unique<PairVisit>(reports[from], reports[to], place, children));
        visits.back()->start();
      }
      children.wait();
      for (auto& visit : visits) found.push_back(std::move(*visit).found());
    }
  return found;
}

}  // namespace troupe::apps
