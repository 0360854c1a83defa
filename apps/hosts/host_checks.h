#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/hosts/check.h"
#include "bench/link.h"
#include "core/result.h"
#include "core/value.h"

/// Checks that compare several machines, and the links between them.
namespace troupe::apps {

/// The report that a machine's doctor sends about it.
struct HostReport {
  std::string host;  // The machine's name in the hostfile.
  std::string version;
  std::string determinism;  // The determinism class of its processor.
  std::string address;      // The address that other machines reach it by; empty if it has none.
  double wall = 0;          // The machine's clock, in seconds since 1970.
  int cores = 1;
  double operations = 0;  // Operations per second of all cores.
  double ahead = 0;       // How many seconds its clock is ahead of the asking machine's.
};
Value to_event(const HostReport& report);
Result<HostReport> report_from(const Value& event);

Check judge_versions(const std::string& here, const std::vector<HostReport>& reports);
Check judge_clocks(const std::vector<HostReport>& reports);
Check judge_processors(const std::vector<HostReport>& reports);
Check judge_speeds(const std::vector<HostReport>& reports);

/// The measurement of a link between two machines.
struct LinkFound {
  std::string from;
  std::string to;
  Result<bench::LinkFigures> figures;
};
/// Returns a check for each link. A link that is much slower than most of the others is a warning.
std::vector<Check> judge_links(const std::vector<LinkFound>& links);

/// Returns every pair of [0, count) once, in rounds. In each round nobody is in two pairs.
std::vector<std::vector<std::pair<std::size_t, std::size_t>>> rounds_of_pairs(std::size_t count);

}  // namespace troupe::apps
