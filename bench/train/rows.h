#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "kernels/instructions.h"

namespace troupe::bench {

/// The program that trains in a row of the table.
enum class Trainer { troupe, torch_eager, torch_compiled };

/// The figures of one run of a row.
struct TrainRun {
  std::vector<double> seconds;  // The seconds of each step but the first.
  double first_step = 0;        // Seconds from the command to the end of the first step.
  double peak_mib = 0;          // The largest resident memory of the process.
  double peak_before = 0;       // The machine's peak right before and right after the run, in
  double peak_after = 0;        // floating-point operations per second.
};

/// Returns whether something else used the cores: the peaks differ by more than 5 %.
bool is_busy(const TrainRun& run);

/// One row of the table: who trained how, and what was measured.
struct TrainRow {
  kernels::Instructions instructions = kernels::Instructions::plain;
  Trainer trainer = Trainer::troupe;
  int cores = 1;
  bool is_bf16 = false;
  std::string how;             // "1 stage, 2 threads"; empty: nothing to add.
  std::vector<TrainRun> runs;  // One for each round that ended.
  std::string problem;         // Why a run failed; empty: none did.

  /// Returns "troupe bf16, 2 replicas" or "PyTorch compiled fp32, 2 threads".
  std::string name() const;
};

/// The work of a step.
struct TrainWork {
  double tokens = 0;
  double operations = 0;
};

/// Returns a table for people. Its ratio divides a row's rate by that of the faster of PyTorch
/// eager and PyTorch compiled, on as many cores with the same instructions: in fp32 for a row in
/// fp32, in the faster of fp32 and bf16 for a row in bf16. Runs on a busy machine are left out if
/// others remain. A row has no ratio if all its runs or all of PyTorch's were on a busy machine, or
/// if PyTorch failed either way. Lines after the table say why.
std::string train_table(const TrainWork& work, const std::vector<TrainRow>& rows);

/// Returns the figures of one run as a line, to be printed as soon as they are known.
std::string train_line(const TrainWork& work, const TrainRow& row, const TrainRun& run);

/// The first line of bench/peers/peer_torch.py: its version and libraries.
struct TorchFacts {
  std::string version;     // "2.15.0+cpu"
  std::string capability;  // The instructions of its own kernels: "AVX2".
  std::string libraries;   // Its libraries for products: "oneDNN, MKL".
};

Result<TorchFacts> torch_facts(const std::string& line);

/// Returns an error if this is another version of PyTorch than `wanted`.
Status check_version(const TorchFacts& facts, const std::string& wanted);
/// Returns an error if PyTorch does not compute with these instructions.
Status check_capability(const TorchFacts& facts, kernels::Instructions instructions);

/// Returns the environment variables that limit PyTorch and its libraries to these instructions.
std::vector<std::pair<std::string, std::string>> torch_limits(kernels::Instructions instructions);

/// Returns the sets that a list like "avx2,avx512" names. `missing` gets a line for each name that
/// this processor lacks.
std::vector<kernels::Instructions> named_sets(const std::string& list,
                                              std::vector<std::string>& missing);

}  // namespace troupe::bench
