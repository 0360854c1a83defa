#include "bench/train/rows.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "bench/figures.h"
#include "core/json.h"

namespace troupe::bench {
namespace {

using kernels::Instructions;

/// Returns the runs that count: those on an idle machine if there are any.
std::vector<TrainRun> counted(const TrainRow& row) {
  std::vector<TrainRun> idle;
  for (const auto& run : row.runs)
    if (!is_busy(run)) idle.push_back(run);
  return idle.empty() ? row.runs : idle;
}

bool is_always_busy(const TrainRow& row) {
  return std::ranges::all_of(row.runs, [](const TrainRun& run) { return is_busy(run); });
}

/// Medians over the runs that count.
struct Figures {
  double seconds = 0, share = 0, first_step = 0, peak_mib = 0;
};

Figures figures_of(const TrainWork& work, const std::vector<TrainRun>& runs) {
  std::vector<double> seconds, shares, first_steps;
  Figures figures;
  for (const auto& run : runs) {
    seconds.insert(seconds.end(), run.seconds.begin(), run.seconds.end());
    shares.push_back(work.operations / median(run.seconds) /
                     ((run.peak_before + run.peak_after) / 2));
    first_steps.push_back(run.first_step);
    figures.peak_mib = std::max(figures.peak_mib, run.peak_mib);
  }
  figures.seconds = median(seconds);
  figures.share = median(shares);
  figures.first_step = median(first_steps);
  return figures;
}

/// The peer of a row: its fastest seconds per step, or why there is none.
struct Peer {
  double seconds = 0;
  std::string why_none;  // Empty if there are seconds, and if nobody asked for a peer.
};

Peer peer_of(const TrainWork& work, const TrainRow& row, const std::vector<TrainRow>& rows) {
  Peer peer;
  for (const auto& other : rows) {
    const bool fits = other.trainer != Trainer::troupe && other.cores == row.cores &&
                      other.instructions == row.instructions && (row.is_bf16 || !other.is_bf16);
    if (!fits) continue;
    if (other.runs.empty()) return {0, other.name() + " failed"};
    if (is_always_busy(other)) return {0, "the machine was busy during " + other.name()};
    const double seconds = figures_of(work, counted(other)).seconds;
    peer.seconds = peer.seconds > 0 ? std::min(peer.seconds, seconds) : seconds;
  }
  return peer;
}

std::string label(const TrainRow& row) {
  return std::string(to_string(row.instructions)) + ", " + row.name();
}

}  // namespace

bool is_busy(const TrainRun& run) {
  constexpr double tolerance = 0.05;
  return std::abs(run.peak_after - run.peak_before) >
         tolerance * std::max(run.peak_before, run.peak_after);
}

std::string TrainRow::name() const {
  std::string text = trainer == Trainer::troupe        ? "troupe "
                     : trainer == Trainer::torch_eager ? "PyTorch eager "
                                                       : "PyTorch compiled ";
  text += is_bf16 ? "bf16" : "fp32";
  if (!how.empty()) return text + ", " + how;
  return text + (cores == 1 ? ", 1 core" : ", " + std::to_string(cores) + " threads");
}

std::string train_table(const TrainWork& work, const std::vector<TrainRow>& rows) {
  std::string text, remarks;
  print(text, "  %-12s %-34s %10s %14s %10s %11s %11s\n", "instructions", "", "tokens/s",
        "share of peak", "x PyTorch", "memory MiB", "first step");
  for (const auto& row : rows) {
    print(text, "  %-12s %-34s ", std::string(to_string(row.instructions)).c_str(),
          row.name().c_str());
    if (row.runs.empty()) {
      print(text, "%10s\n", "-");
      remarks += label(row) + ": " + (row.problem.empty() ? "not run" : row.problem) + "\n";
      continue;
    }
    const auto figures = figures_of(work, counted(row));
    const auto peer = peer_of(work, row, rows);
    print(text, "%10.0f %14.3f ", work.tokens / figures.seconds, figures.share);
    if (peer.seconds > 0 && !is_always_busy(row))
      print(text, "%10.2f", peer.seconds / figures.seconds);
    else
      print(text, "%10s", "-");
    print(text, " %11.0f %9.1f s\n", figures.peak_mib, figures.first_step);
    if (is_always_busy(row))
      remarks += label(row) +
                 ": the machine was busy: its peak before and after a run differs by more than "
                 "5 %; no ratio\n";
    else if (!peer.why_none.empty())
      remarks += label(row) + ": no ratio, because " + peer.why_none + "\n";
    if (!row.problem.empty()) remarks += label(row) + ": a run failed: " + row.problem + "\n";
  }
  return text + remarks;
}

std::string train_line(const TrainWork& work, const TrainRow& row, const TrainRun& run) {
  const auto figures = figures_of(work, {run});
  std::string text;
  print(text, "%-8s %-34s %8.0f tokens/s, %.3f of the peak, %.0f MiB, first step after %.1f s%s",
        std::string(to_string(row.instructions)).c_str(), row.name().c_str(),
        work.tokens / figures.seconds, figures.share, figures.peak_mib, figures.first_step,
        is_busy(run) ? "; the machine is busy" : "");
  return text;
}

Result<TorchFacts> torch_facts(const std::string& line) {
  const auto value = parse_json(line);
  const auto text_of = [&](const char* key) -> std::string {
    const Value* found = value ? value->find(key) : nullptr;
    return found && found->text() ? std::string(*found->text()) : "";
  };
  TorchFacts facts{text_of("torch"), text_of("capability"), text_of("libraries")};
  if (facts.version.empty() || facts.capability.empty())
    return Error{"PyTorch did not say its version and instructions; it said: " + line};
  return facts;
}

Status check_version(const TorchFacts& facts, const std::string& wanted) {
  if (facts.version.substr(0, facts.version.find('+')) == wanted) return Done{};
  return Error{"PyTorch is " + facts.version + ", and the comparison is made with " + wanted};
}

Status check_capability(const TorchFacts& facts, Instructions instructions) {
  if (instructions == Instructions::neon) return Done{};
  const std::string expected = instructions >= Instructions::avx512 ? "AVX512"
                               : instructions == Instructions::avx2 ? "AVX2"
                                                                    : "DEFAULT";
  if (facts.capability.starts_with(expected)) return Done{};
  return Error{"PyTorch computes with " + facts.capability + ", not with " +
               std::string(to_string(instructions))};
}

std::vector<std::pair<std::string, std::string>> torch_limits(Instructions instructions) {
  switch (instructions) {
    case Instructions::avx2:
      return {{"ATEN_CPU_CAPABILITY", "avx2"},
              {"ONEDNN_MAX_CPU_ISA", "AVX2"},
              {"MKL_ENABLE_INSTRUCTIONS", "AVX2"}};
    case Instructions::avx512:
      return {{"ATEN_CPU_CAPABILITY", "avx512"},
              {"ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16"},
              {"MKL_ENABLE_INSTRUCTIONS", "AVX512_E3"}};
    case Instructions::plain:
      return {{"ATEN_CPU_CAPABILITY", "default"}, {"ONEDNN_MAX_CPU_ISA", "SSE41"}};
    case Instructions::neon:
    case Instructions::amx:
      return {};
  }
  return {};
}

std::vector<Instructions> named_sets(const std::string& list, std::vector<std::string>& missing) {
  std::vector<Instructions> sets;
  std::istringstream names(list);
  for (std::string name; std::getline(names, name, ',');) {
    const auto found = kernels::find_instructions(name);
    if (!found)
      missing.push_back(found.error().text);
    else if (std::ranges::find(sets, *found) == sets.end())
      sets.push_back(*found);
  }
  return sets;
}

}  // namespace troupe::bench
