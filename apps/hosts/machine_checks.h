#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/hosts/check.h"
#include "core/result.h"

/// What a machine is made of. Beside each function that reads a fact there is one that judges it,
/// and knows nothing but what it is given.
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
  bool fuses = false;  // A multiplication and an addition in one instruction.
  bool avx512 = false;
  std::string precision;  // What precision.compute = "auto" means here: "bf16-blocks".
};
ProcessorFacts read_processor();
Check judge_processor(const ProcessorFacts& facts);

/// What decides the bits of a run on such a processor: runs agree to the bit where this does.
std::string determinism_class(const ProcessorFacts& facts);

struct CoreFacts {
  int online = 1;
  int usable = 1;                    // By this process.
  std::optional<double> quota = {};  // Of its control groups.
  int used = 1;                      // What this program takes of them.
  int numa_nodes = 1;
};
CoreFacts read_cores();
Check judge_cores(const CoreFacts& facts);

struct MemoryFacts {
  std::int64_t total = 0;
  std::int64_t available = 0;
  std::optional<std::int64_t> limit = {};  // Of its control groups.
};
MemoryFacts read_memory();
Check judge_memory(const MemoryFacts& facts);

struct SharedMemoryFacts {
  std::int64_t bytes = 0;  // Of /dev/shm; 0 where there is none.
  bool nameless = false;   // Whether memory can be shared that has no name there.
};
SharedMemoryFacts read_shared_memory();
Check judge_shared_memory(const SharedMemoryFacts& facts);

struct LimitFacts {
  std::optional<std::uint64_t> soft;  // Nothing: no limit.
  std::optional<std::uint64_t> hard;
};
LimitFacts read_open_files();
Check judge_open_files(const LimitFacts& facts);
LimitFacts read_locked_memory();
Check judge_locked_memory(const LimitFacts& facts, int gpus);

/// GPUs that the system knows.
int read_gpus();
/// `usable` by this program; an error says why none is.
Check judge_gpus(int gpus, const Result<int>& usable);

struct LibraryFacts {
  std::string name;
  std::string compiled;  // The version that this program was compiled with.
  std::string found;     // And the one that it runs with.
  std::string more;      // "with CURVE"
  std::string lacks;     // What it should have and does not.
};
std::vector<LibraryFacts> read_libraries();
Check judge_libraries(const std::vector<LibraryFacts>& facts);

struct SpeedFacts {
  int threads = 1;
  double operations = 0;  // A second, of all threads.
  double copies = 0;      // Bytes a second, by one thread.
};
/// Takes some tenths of a second.
SpeedFacts measure_speed(int threads);
Check judge_speed(const SpeedFacts& facts);

}  // namespace troupe::apps
