#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/hosts/check.h"
#include "bench/link.h"
#include "core/result.h"
#include "core/value.h"

/// What several machines must agree on, and what lies between them.
namespace troupe::apps {

/// What a machine's own doctor says about it to others.
struct HostReport {
  std::string host;  // As the hostfile names it.
  std::string version;
  std::string determinism;  // The class of its processor.
  std::string address;      // By which others reach it; empty where there is none.
  double wall = 0;          // Its clock, in seconds since 1970.
  int cores = 1;
  double operations = 0;  // A second, of all cores.
  double ahead = 0;       // Seconds by which its clock is before that of whoever asked.
};
Value to_event(const HostReport& report);
Result<HostReport> report_from(const Value& event);

Check judge_versions(const std::string& here, const std::vector<HostReport>& reports);
Check judge_clocks(const std::vector<HostReport>& reports);
Check judge_processors(const std::vector<HostReport>& reports);
Check judge_speeds(const std::vector<HostReport>& reports);

/// What was measured between two machines.
struct LinkFound {
  std::string from;
  std::string to;
  Result<bench::LinkFigures> figures;
};
/// A check each: one that is much slower than most others stands out.
std::vector<Check> judge_links(const std::vector<LinkFound>& links);

/// Every pair of [0, count) once, in rounds in which nobody is in two pairs.
std::vector<std::vector<std::pair<std::size_t, std::size_t>>> rounds_of_pairs(std::size_t count);

}  // namespace troupe::apps
