#include "apps/hosts/machine_checks.h"

#include <gnu/libc-version.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <caf/config.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string_view>
#include <vector>

#include "apps/machine/machine_share.h"
#include "apps/machine/this_machine.h"
#include "core/descriptor.h"
#include "core/json.h"
#include "core/units.h"
#include "kernels/instructions.h"
#include "kernels/linear.h"
#include "transport/channels/library.h"

namespace troupe::apps {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t mib = std::int64_t{1} << 20, gib = mib << 10;

/// Returns the value after `key` and a colon or '=' in a file of such lines.
std::string value_in(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const auto begin = line.find_first_of(":=");
    if (begin == std::string::npos) continue;
    line = line.substr(begin + 1);
    line.erase(0, line.find_first_not_of(" \t\""));
    line.erase(line.find_last_not_of(" \t\"") + 1);
    return line;
  }
  return {};
}

LimitFacts read_limit(__rlimit_resource which) {
  rlimit limit{};
  getrlimit(which, &limit);
  const auto known = [](rlim_t value) {
    return value == RLIM_INFINITY ? std::nullopt : std::optional<std::uint64_t>(value);
  };
  return {known(limit.rlim_cur), known(limit.rlim_max)};
}

/// Returns the part of a version that compatible versions share: "4.3" for "4.3.4".
std::string series(const std::string& version) {
  return version.substr(0, version.find('.', version.find('.') + 1));
}

}  // namespace

BuildFacts read_build() {
  utsname kernel{};
  uname(&kernel);
  std::string system = value_in("/etc/os-release", "PRETTY_NAME");
  if (!system.empty()) system += ", ";
  return {TROUPE_VERSION,
#ifdef __clang__
          "clang " __clang_version__,
#else
          "g++ " __VERSION__,
#endif
          system + kernel.sysname + " " + kernel.release + " " + kernel.machine};
}

Check judge_build(const BuildFacts& facts) {
  return {"version", Verdict::ok,
          "troupe " + facts.version + ", by " + facts.compiler + "; " + facts.system, ""};
}

ProcessorFacts read_processor() {
  ProcessorFacts facts;
  facts.model = value_in("/proc/cpuinfo", "model name");
  if (facts.model.empty()) facts.model = "a processor without a name";
#if defined(__x86_64__)
  facts.fuses = __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2");
  facts.avx512 = kernels::instructions_in_use() >= kernels::Instructions::avx512;
#elif defined(__aarch64__)
  facts.fuses = true;
#endif
  facts.precision = std::string(
      to_string(kernels::has_bf16_products() ? kernels::fastest_bf16() : kernels::Precision::fp32));
  return facts;
}

std::string determinism_class(const ProcessorFacts& facts) {
  return facts.precision + " where precision is auto";
}

Check judge_processor(const ProcessorFacts& facts) {
  const std::string vectors = facts.avx512 ? "AVX-512" : facts.fuses ? "vectors that fuse" : "";
  const std::string found =
      facts.model + (vectors.empty() ? "" : ", " + vectors) + "; " + determinism_class(facts);
  if (!facts.fuses)
    return {"processor", Verdict::warn,
            found + "; without fused multiplication and addition the same bits come slowly",
            "on x86-64 it wants AVX2 and FMA (Haswell, Zen or newer); in a virtual machine let the "
            "host's processor through"};
  return {"processor", Verdict::ok, found, ""};
}

CoreFacts read_cores() {
  CoreFacts facts;
  const auto share = own_machine_share();
  facts.online = share.online;
  facts.usable = share.usable;
  facts.quota = share.quota;
  facts.used = share.cores();
  std::error_code ignored;
  int nodes = 0;
  for (const auto& entry : fs::directory_iterator("/sys/devices/system/node", ignored)) {
    const auto name = entry.path().filename().string();
    nodes += name.size() > 4 && name.starts_with("node") && name[4] >= '0' && name[4] <= '9';
  }
  facts.numa_nodes = std::max(1, nodes);
  return facts;
}

Check judge_cores(const CoreFacts& facts) {
  std::string found = counted(facts.usable, "core");
  if (facts.usable < facts.online) found += " of " + std::to_string(facts.online);
  found += ", " + counted(facts.numa_nodes, "NUMA node");
  if (facts.quota && *facts.quota < facts.usable) {
    found += "; the control group gives the time of " + shortest(*facts.quota) + ", so " +
             counted(facts.used, "thread");
    if (*facts.quota < facts.used)
      return {"cores", Verdict::warn, found + ", which it stops again and again",
              "give the container at least one core"};
    return {"cores", Verdict::ok, found, ""};
  }
  if (facts.numa_nodes > 1)
    return {"cores", Verdict::warn, found + ": memory of another one is slower",
            "a node for each, on its own cores and memory: numactl --cpunodebind=N --membind=N "
            "troupe node"};
  return {"cores", Verdict::ok, found, ""};
}

MemoryFacts read_memory() {
  MemoryFacts facts;
  const auto kilobytes = [](std::string_view key) {
    return std::strtoll(value_in("/proc/meminfo", key).c_str(), nullptr, 10) * 1024;
  };
  const auto share = own_machine_share();
  facts.total = share.total_memory;
  facts.available = kilobytes("MemAvailable");
  facts.limit = share.memory_limit;
  return facts;
}

Check judge_memory(const MemoryFacts& facts) {
  std::string found = gib_text(facts.available, 1) + " of " + gib_text(facts.total, 1) + " free";
  std::int64_t free = facts.available;
  if (facts.limit) {
    found += "; the control group may have " + gib_text(*facts.limit, 1);
    free = std::min(free, *facts.limit);
  }
  constexpr const char* fix =
      "stop other programs, or raise the limit; `troupe plan CONFIG` shows what a run needs";
  if (free < 128 * mib) return {"memory", Verdict::fail, found, fix};
  if (free < gib) return {"memory", Verdict::warn, found, fix};
  return {"memory", Verdict::ok, found, ""};
}

SharedMemoryFacts read_shared_memory() {
  SharedMemoryFacts facts;
  struct statvfs space {};
  if (statvfs("/dev/shm", &space) == 0)
    facts.bytes =
        static_cast<std::int64_t>(space.f_blocks) * static_cast<std::int64_t>(space.f_frsize);
  const Descriptor file(memfd_create("troupe-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  facts.nameless = file && ftruncate(file.number(), mib) == 0;
  return facts;
}

Check judge_shared_memory(const SharedMemoryFacts& facts) {
  const std::string name = "shared memory";
  if (!facts.nameless)
    return {
        name, Verdict::fail, "memfd_create is not allowed here, and channels stand on it",
        "a kernel of 3.17 or later, and a sandbox that permits it; or troupe node --carrier tcp"};
  const std::string found = "/dev/shm " + gib_text(facts.bytes, 1) +
                            "; channels use memory without a name, which counts as the process'";
  // The default of containers. It is too small for other programs that share a host with us.
  if (facts.bytes <= 64 * mib)
    return {name, Verdict::warn, found,
            "docker run --shm-size=1g, or in Kubernetes a volume with medium: Memory at /dev/shm, "
            "for libraries that want it (NCCL, PyTorch)"};
  return {name, Verdict::ok, found, ""};
}

LimitFacts read_open_files() { return read_limit(RLIMIT_NOFILE); }

Check judge_open_files(const LimitFacts& facts) {
  const std::string found =
      (facts.soft ? std::to_string(*facts.soft) : "any number of") + std::string(" a process");
  constexpr std::uint64_t few = 256, enough = 1024;
  const std::string fix = "ulimit -n 65536, or LimitNOFILE=65536 in the service's file";
  if (facts.soft && *facts.soft < few)
    return {"open files", Verdict::fail, found + ", and a run over many nodes needs more", fix};
  if (facts.soft && *facts.soft < enough)
    return {"open files", Verdict::warn, found + ": enough for some tens of nodes", fix};
  return {"open files", Verdict::ok, found, ""};
}

LimitFacts read_locked_memory() { return read_limit(RLIMIT_MEMLOCK); }

Check judge_locked_memory(const LimitFacts& facts, int gpus) {
  const std::string found =
      facts.soft ? bytes_text(static_cast<std::int64_t>(*facts.soft)) : "without a limit";
  if (!facts.soft) return {"locked memory", Verdict::ok, found, ""};
  if (gpus == 0)
    return {"locked memory", Verdict::skip, found + "; only GPUs want pages that stay", ""};
  if (*facts.soft < static_cast<std::uint64_t>(gib))
    return {"locked memory", Verdict::warn, found, "ulimit -l unlimited, or LimitMEMLOCK=infinity"};
  return {"locked memory", Verdict::ok, found, ""};
}

int read_gpus() {
  static const std::regex device("nvidia[0-9]+");
  int found = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/dev", ignored))
    found += std::regex_match(entry.path().filename().string(), device);
  return found;
}

Check judge_gpus(int gpus, const Result<int>& usable) {
  const std::string found = gpus == 0 ? "there is none" : counted(gpus, "NVIDIA device");
  if (!usable) return {"GPU", Verdict::skip, found + "; " + usable.error().text, ""};
  if (*usable == 0) return {"GPU", Verdict::skip, found, ""};
  return {"GPU", Verdict::ok, counted(*usable, "GPU") + " for train.device = \"cuda\"", ""};
}

std::vector<LibraryFacts> read_libraries() {
  const auto zeromq = transport::zeromq_library();
  const std::string caf = std::to_string(CAF_VERSION / 10000) + "." +
                          std::to_string(CAF_VERSION / 100 % 100) + "." +
                          std::to_string(CAF_VERSION % 100);
  const std::string libc = std::to_string(__GLIBC__) + "." + std::to_string(__GLIBC_MINOR__);
  return {{"ZeroMQ", zeromq.compiled, zeromq.found, zeromq.has_curve ? "with CURVE" : "",
           zeromq.has_curve ? "" : "CURVE"},
          {"CAF", caf, caf, "", ""},
          {"glibc", libc, gnu_get_libc_version(), "", ""}};
}

Check judge_libraries(const std::vector<LibraryFacts>& facts) {
  std::string found, fix;
  Verdict verdict = Verdict::ok;
  for (const auto& one : facts) {
    found += (found.empty() ? "" : ", ") + one.name + " " + one.found;
    if (!one.more.empty()) found += " " + one.more;
    if (!one.lacks.empty()) {
      verdict = Verdict::fail;
      found += " without " + one.lacks;
      fix = "install the system's own package of " + one.name;
    } else if (series(one.compiled) != series(one.found)) {
      verdict = std::max(verdict, Verdict::warn);
      found += " (compiled with " + one.compiled + ")";
      if (fix.empty()) fix = "build it on this machine, or on one like it";
    }
  }
  return {"libraries", verdict, found, fix};
}

SpeedFacts measure_speed(int threads) {
  const auto profile = measure_this_machine(1, kernels::Precision::fp32);
  return {threads, profile.rate.operations, profile.rate.bandwidth};
}

Check judge_speed(const SpeedFacts& facts) {
  char found[128];
  std::snprintf(found, sizeof found, "%.0f GFLOP/s in fp32 by %s, copies move %.1f GB/s",
                facts.operations * 1e-9, counted(facts.threads, "thread").c_str(),
                facts.copies * 1e-9);
  constexpr double slow_thread = 2e9;
  if (facts.operations < slow_thread * facts.threads)
    return {"speed", Verdict::warn, found,
            "another program uses the cores, or the clock rate is reduced: see top, and cpupower "
            "frequency-info"};
  return {"speed", Verdict::ok, found, ""};
}

}  // namespace troupe::apps
