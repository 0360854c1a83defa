#include "apps/hosts/host_checks.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace troupe::apps {
namespace {

double median(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  return numbers.empty() ? 0 : numbers[numbers.size() / 2];
}

template <class... Values>
std::string print(const char* format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

/// Formats a duration: "12.5 s", "3.2 h", "365 days".
std::string span(double seconds) {
  constexpr double hour = 3600, day = 24 * hour;
  if (seconds < 2 * hour) return print("%.1f s", seconds);
  if (seconds < 2 * day) return print("%.1f h", seconds / hour);
  return print("%.0f days", seconds / day);
}

}  // namespace

Value to_event(const HostReport& report) {
  Value event = Value::Map{};
  event.set("type", "host");
  event.set("version", report.version);
  event.set("determinism", report.determinism);
  event.set("address", report.address);
  event.set("wall", report.wall);
  event.set("cores", report.cores);
  event.set("operations", report.operations);
  return event;
}

Result<HostReport> report_from(const Value& event) {
  HostReport report;
  const auto text = [&](std::string_view key, std::string& into) {
    const Value* value = event.find(key);
    if (value && value->text()) into = *value->text();
    return value && value->text();
  };
  const auto number = [&](std::string_view key, double& into) {
    const Value* value = event.find(key);
    if (value && value->is_number()) into = value->number();
    return value && value->is_number();
  };
  double cores = 1;
  if (!text("version", report.version) || !text("determinism", report.determinism) ||
      !text("address", report.address) || !number("wall", report.wall) || !number("cores", cores) ||
      !number("operations", report.operations))
    return Error{"its `troupe doctor` reports in another format; install the same version there"};
  report.cores = static_cast<int>(cores);
  return report;
}

Check judge_versions(const std::string& here, const std::vector<HostReport>& reports) {
  std::vector<std::string> others;
  for (const auto& one : reports)
    if (one.version != here) others.push_back(one.host + " has " + one.version);
  if (others.empty()) return {"versions", Verdict::ok, "troupe " + here + " everywhere", ""};
  return {"versions", Verdict::fail, "here is troupe " + here + ", but " + joined(others),
          "install the same version on all machines: a head accepts no other version"};
}

Check judge_clocks(const std::vector<HostReport>& reports) {
  // An answer over ssh is some tenths of a second old when it arrives.
  constexpr double noticed = 2, wrong = 3600;
  std::vector<std::string> off;
  double most = 0;
  for (const auto& one : reports) {
    most = std::max(most, std::abs(one.ahead));
    if (std::abs(one.ahead) >= noticed)
      off.push_back(one.host + " is " + span(std::abs(one.ahead)) +
                    (one.ahead > 0 ? " ahead" : " behind"));
  }
  if (off.empty()) return {"clocks", Verdict::ok, print("within %.1f s of this one", most), ""};
  return {"clocks", most >= wrong ? Verdict::fail : Verdict::warn, joined(off),
          "timedatectl set-ntp true there: the times in events and logs would not fit together"};
}

Check judge_processors(const std::vector<HostReport>& reports) {
  std::map<std::string, std::vector<std::string>> hosts_of;
  for (const auto& one : reports) hosts_of[one.determinism].push_back(one.host);
  if (hosts_of.size() <= 1)
    return {"processors", Verdict::ok,
            hosts_of.empty() ? "" : "all of one class: " + hosts_of.begin()->first, ""};
  std::string found;
  for (const auto& [name, hosts] : hosts_of)
    found += (found.empty() ? "" : "; ") + joined(hosts) + ": " + name;
  return {"processors", Verdict::warn, found,
          "name the precision: --set precision.compute=fp32; fp32 has the same bits on all"};
}

Check judge_speeds(const std::vector<HostReport>& reports) {
  std::vector<double> rates;
  for (const auto& one : reports) rates.push_back(one.operations / std::max(1, one.cores));
  const double middle = median(rates);
  constexpr double slow = 0.8;
  std::vector<std::string> behind;
  for (std::size_t i = 0; i < reports.size(); ++i)
    if (rates[i] < slow * middle)
      behind.push_back(reports[i].host + print(" reaches %.0f %%", rates[i] / middle * 100));
  if (behind.empty())
    return {"speeds", Verdict::ok, print("about %.0f GFLOP/s a core on each", middle * 1e-9), ""};
  return {"speeds", Verdict::warn, joined(behind) + " of what most reach on a core",
          "see what else runs there: a pipeline is as fast as its slowest device"};
}

std::vector<Check> judge_links(const std::vector<LinkFound>& links) {
  std::vector<double> latencies, bandwidths;
  for (const auto& link : links) {
    if (!link.figures) continue;
    latencies.push_back(link.figures->latency);
    bandwidths.push_back(link.figures->bandwidth);
  }
  const double latency = median(latencies), bandwidth = median(bandwidths);
  constexpr double slow = 0.5, late = 4;
  std::vector<Check> checks;
  for (const auto& link : links) {
    const std::string between = link.from + " - " + link.to + ": ";
    if (!link.figures) {
      checks.push_back({"link", Verdict::fail, between + link.figures.error().text,
                        "nodes connect to each other on ports that the system assigns: open them "
                        "in firewalls (see /proc/sys/net/ipv4/ip_local_port_range)"});
      continue;
    }
    const auto& figures = *link.figures;
    const std::string found =
        between + print("%.0f us, %.2f GB/s", figures.latency * 1e6, figures.bandwidth * 1e-9);
    const bool stands_out =
        figures.bandwidth < slow * bandwidth || figures.latency > late * latency;
    checks.push_back({"link", stands_out ? Verdict::warn : Verdict::ok, found,
                      stands_out ? print("most have %.0f us and %.2f GB/s: look at its cable, "
                                         "switch port and interface",
                                         latency * 1e6, bandwidth * 1e-9)
                                 : ""});
  }
  return checks;
}

std::vector<std::vector<std::pair<std::size_t, std::size_t>>> rounds_of_pairs(std::size_t count) {
  // Uses the circle method: one participant stays, the others move by one seat each round. An odd
  // count adds an empty seat.
  const std::size_t seats = count + count % 2;
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> rounds;
  for (std::size_t round = 0; round + 1 < seats; ++round) {
    auto& pairs = rounds.emplace_back();
    const auto at = [&](std::size_t seat) {
      return seat == 0 ? 0 : 1 + (seat - 1 + round) % (seats - 1);
    };
    for (std::size_t seat = 0; seat < seats / 2; ++seat) {
      const std::size_t a = at(seat), b = at(seats - 1 - seat);
      if (a < count && b < count) pairs.emplace_back(std::min(a, b), std::max(a, b));
    }
  }
  return rounds;
}

}  // namespace troupe::apps
