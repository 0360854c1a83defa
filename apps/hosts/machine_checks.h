#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/hosts/check.h"
#include "core/result.h"

/// Checks of a machine's parts. Each function that reads a fact has a companion that judges it. The
/// judge is pure: it uses only its arguments.
namespace troupe::apps {

struct BuildFacts {
  std::string version;
  std::string compiler;
  std::string system;  // "Debian GNU/Linux 12, Linux 6.1 x86_64"
};
BuildFacts read_build();
Check judge_build(const BuildFacts& facts);

struct ProcessorFacts {
  std::string model;
  bool fuses = false;     // The processor has a fused multiply-add instruction.
  bool avx512 = false;    // Kernels use AVX-512.
  std::string precision;  // The meaning of precision.compute = "auto" here: "bf16-blocks".
};
ProcessorFacts read_processor();
Check judge_processor(const ProcessorFacts& facts);

/// Returns the processor properties that decide the bits of a run. Machines with equal classes
/// compute equal bits.
std::string determinism_class(const ProcessorFacts& facts);

struct CoreFacts {
  int online = 1;
  int usable = 1;                    // Cores that this process may use.
  std::optional<double> quota = {};  // The quota of its control groups.
  int used = 1;                      // Cores that this program uses.
  int numa_nodes = 1;
};
CoreFacts read_cores();
Check judge_cores(const CoreFacts& facts);

struct MemoryFacts {
  std::int64_t total = 0;
  std::int64_t available = 0;
  std::optional<std::int64_t> limit = {};  // The limit of its control groups.
};
MemoryFacts read_memory();
Check judge_memory(const MemoryFacts& facts);

struct SharedMemoryFacts {
  std::int64_t bytes = 0;  // The size of /dev/shm; 0 if there is none.
  bool nameless = false;   // Whether shared memory works without a name in /dev/shm.
};
SharedMemoryFacts read_shared_memory();
Check judge_shared_memory(const SharedMemoryFacts& facts);

struct LimitFacts {
  std::optional<std::uint64_t> soft;  // Empty: no limit.
  std::optional<std::uint64_t> hard;
};
LimitFacts read_open_files();
Check judge_open_files(const LimitFacts& facts);
LimitFacts read_locked_memory();
Check judge_locked_memory(const LimitFacts& facts, int gpus);

/// Counts the GPUs that the system knows.
int read_gpus();
/// Judges how many GPUs the program can use; an error in `usable` says why it can use none.
Check judge_gpus(int gpus, const Result<int>& usable);

struct LibraryFacts {
  std::string name;
  std::string compiled;  // The version at compile time.
  std::string found;     // The version at run time.
  std::string more;      // A feature, such as "with CURVE".
  std::string lacks;     // A feature that is missing.
};
std::vector<LibraryFacts> read_libraries();
Check judge_libraries(const std::vector<LibraryFacts>& facts);

struct SpeedFacts {
  int threads = 1;
  double operations = 0;  // Operations per second of all threads.
  double copies = 0;      // Bytes per second of one thread.
};
/// Measures for some tenths of a second.
SpeedFacts measure_speed(int threads);
Check judge_speed(const SpeedFacts& facts);

}  // namespace troupe::apps
