#include "actors/nodes/measured.h"

#include <algorithm>
#include <vector>

namespace troupe::actors {
namespace {

// Figures of a period count until the end of the next one.
constexpr auto period = std::chrono::minutes(10);

LinkFigures best_of(const LinkFigures& one, const LinkFigures& other) {
  LinkFigures best{.latency = std::min(one.latency, other.latency)};
  if (one.bytes_per_second || other.bytes_per_second)
    best.bytes_per_second =
        std::max(one.bytes_per_second.value_or(0), other.bytes_per_second.value_or(0));
  return best;
}

}  // namespace

Status may(const Paths& paths, int from, int processes) {
  std::vector<bool> is_known(static_cast<std::size_t>(processes));
  for (const auto& path : paths.paths) {
    if (path.process >= processes || path.process == from)
      return Error{std::string(Paths::type) + ": found a path to process " +
                   std::to_string(path.process) + ", wanted another process of " +
                   std::to_string(processes)};
    const auto i = static_cast<std::size_t>(path.process);
    if (is_known[i])
      return Error{std::string(Paths::type) + ": found two paths to process " +
                   std::to_string(path.process)};
    is_known[i] = true;
  }
  return Done{};
}

void add_link(std::vector<MeasuredLink>& links, const std::string& host, const LinkFigures& figures,
              Time now) {
  drop_old(links, now);
  auto link = std::ranges::find(links, host, &MeasuredLink::host);
  if (link == links.end()) {
    if (links.size() < most_links)
      links.push_back(
          {.host = host, .best = figures, .told = now, .in_period = figures, .began = now});
    return;
  }
  link->told = now;
  if (now - link->began < period) {
    link->in_period = best_of(link->in_period, figures);
  } else {
    link->before.reset();
    if (now - link->began < 2 * period) link->before = link->in_period;
    link->in_period = figures;
    link->began = now;
  }
  link->best = link->before ? best_of(*link->before, link->in_period) : link->in_period;
}

void drop_old(std::vector<MeasuredLink>& links, Time now) {
  std::erase_if(links, [now](const MeasuredLink& link) { return now - link.told > links_hold; });
}

}  // namespace troupe::actors
