#include "apps/machine/machine_share.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "apps/program.h"
#include "catch.h"
#include "cluster/process.h"

using namespace troupe;
using namespace troupe::apps;
using namespace troupe::tests;

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20, gib = mib << 10;

/// A /proc and a /sys of a machine with 8 processors and 16 GiB.
struct Machine {
  Workplace here;

  Machine() {
    write("/proc/meminfo", "MemTotal:       16777216 kB\nMemFree:        1 kB\n");
    write("/proc/self/status", "Name:\ttroupe\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n");
    write("/sys/devices/system/cpu/online", "0-7\n");
  }
  void write(const std::string& path, const std::string& text) const {
    const fs::path file = here.path().string() + path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  MachineShare share() const { return own_machine_share(here.path().string()); }
};

const std::string version_2 = "30 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

}  // namespace

TEST_CASE("without limits a process has the whole machine", "[hosts]") {
  Machine machine;
  CHECK(machine.share().cores() == 8);
  CHECK(machine.share().memory() == 16 * gib);
  machine.write("/proc/self/mountinfo", version_2);
  machine.write("/proc/self/cgroup", "0::/user.slice\n");
  machine.write("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
  machine.write("/sys/fs/cgroup/user.slice/memory.max", "max\n");
  CHECK(machine.share().cores() == 8);
  CHECK(!machine.share().quota);
  CHECK(machine.share().memory() == 16 * gib);
}

TEST_CASE("what is in use of a machine is that of the own processors and group", "[hosts]") {
  Machine machine;
  const auto use = [&] { return use_of_machine(machine.here.path().string()); };
  CHECK(use().all_ticks == 0);
  CHECK_FALSE(use().memory);
  machine.write("/proc/stat",
                "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 40 5 6 7 8 100 100\n"
                "cpu1 10 0 0 0 0 0 0 0 0 0\nintr 7\n");
  machine.write("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 4194304 kB\n");
  CHECK(use().busy_ticks == 37);
  CHECK(use().all_ticks == 82);
  CHECK(use().memory == 12 * gib);
  machine.write("/proc/self/status", "Cpus_allowed_list:\t1\n");
  CHECK(use().busy_ticks == 10);
  CHECK(use().all_ticks == 10);
  machine.write("/proc/self/mountinfo", version_2);
  machine.write("/proc/self/cgroup", "0::/pod\n");
  machine.write("/sys/fs/cgroup/pod/memory.max", "4294967296\n");
  CHECK_FALSE(use().memory);
  machine.write("/sys/fs/cgroup/pod/memory.current", "3221225472\n");
  machine.write("/sys/fs/cgroup/pod/memory.stat", "anon 1\ninactive_file 1073741824\n");
  CHECK(use().memory == 2 * gib);
}

TEST_CASE("the smaller of a cpuset and a quota bounds the threads", "[hosts]") {
  Machine machine;
  machine.write("/proc/self/status", "Cpus_allowed_list:\t0-1,4,6-7\n");
  CHECK(machine.share().usable == 5);
  CHECK(machine.share().online == 8);
  CHECK(machine.share().cores() == 5);
  machine.write("/proc/self/mountinfo", version_2);
  machine.write("/proc/self/cgroup", "0::/a\n");
  machine.write("/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
  CHECK(machine.share().quota == 2.5);
  CHECK(machine.share().cores() == 2);
  machine.write("/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  CHECK(machine.share().cores() == 1);
  machine.write("/sys/fs/cgroup/a/cpu.max", "3200000 100000\n");
  CHECK(machine.share().cores() == 5);
}

TEST_CASE("the smallest limit among a group and its ancestors counts", "[hosts]") {
  Machine machine;
  machine.write("/proc/self/mountinfo", version_2);
  machine.write("/proc/self/cgroup", "0::/system.slice/pod/container\n");
  machine.write("/sys/fs/cgroup/system.slice/pod/container/cpu.max", "600000 100000\n");
  machine.write("/sys/fs/cgroup/system.slice/pod/container/memory.max", "max\n");
  machine.write("/sys/fs/cgroup/system.slice/pod/cpu.max", "300000 100000\n");
  machine.write("/sys/fs/cgroup/system.slice/pod/memory.max", "4294967296\n");
  machine.write("/sys/fs/cgroup/system.slice/cpu.max", "max 100000\n");
  machine.write("/sys/fs/cgroup/system.slice/memory.max", "8589934592\n");
  CHECK(machine.share().cores() == 3);
  CHECK(machine.share().memory() == 4 * gib);
}

TEST_CASE("version 1 limits count, each in its own hierarchy", "[hosts]") {
  Machine machine;
  machine.write("/proc/self/mountinfo",
                "31 23 0:28 / /sys/fs/cgroup rw shared:9 - tmpfs tmpfs rw\n"
                "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                "35 31 0:32 / /sys/fs/cgroup/memory rw shared:12 - cgroup cgroup rw,memory\n"
                "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  machine.write("/proc/self/cgroup", "4:memory:/a/b\n2:cpu,cpuacct:/c\n0::/\n");
  machine.write("/sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "150000\n");
  machine.write("/sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us", "50000\n");
  machine.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  machine.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  machine.write("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
  machine.write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "536870912\n");
  CHECK(machine.share().cores() == 3);
  CHECK(machine.share().memory() == 512 * mib);
}

TEST_CASE("a container that sees its group as the root gets that group's limits", "[hosts]") {
  Machine machine;
  // The host's path, of which only the last part is mounted here.
  machine.write("/proc/self/mountinfo",
                "30 23 0:28 /docker/0f3a /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  machine.write("/proc/self/cgroup", "4:memory:/docker/0f3a\n");
  machine.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
  CHECK(machine.share().memory() == 1 * gib);
  // A path outside the mount: only the root is visible.
  machine.write("/proc/self/mountinfo", version_2);
  machine.write("/proc/self/cgroup", "0::/../other\n");
  machine.write("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  CHECK(machine.share().cores() == 1);
}

TEST_CASE("a real control group limits the doctor and a node", "[hosts]") {
  // This process' groups of version 1, or its group of version 2.
  std::string cpu, memory;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto group = line.substr(line.find(':', line.find(':') + 1) + 1);
    if (line.find(":cpu:") != std::string::npos) cpu = "/sys/fs/cgroup/cpu" + group;
    if (line.find(":cpu,cpuacct:") != std::string::npos) cpu = "/sys/fs/cgroup/cpu,cpuacct" + group;
    if (line.find(":memory:") != std::string::npos) memory = "/sys/fs/cgroup/memory" + group;
  }
  const auto write = [](const fs::path& path, const std::string& text) {
    std::ofstream out(path);
    out << text;
    out.flush();
    return out.good();
  };
  const std::string name = "/troupe-test-" + std::to_string(getpid());
  struct Group {
    std::string path;
    ~Group() {
      if (!path.empty()) rmdir(path.c_str());
    }
  };
  Group of_cpu, of_memory;
  std::error_code error;
  if (cpu.empty() || memory.empty() || !fs::create_directory(cpu + name, error) ||
      !(of_cpu.path = cpu + name, fs::create_directory(memory + name, error))) {
    WARN("skipped: no control group of version 1 can be made here: " + error.message());
    return;
  }
  of_memory.path = memory + name;
  REQUIRE(write(of_cpu.path + "/cpu.cfs_period_us", "100000"));
  REQUIRE(write(of_cpu.path + "/cpu.cfs_quota_us", "100000"));
  REQUIRE(write(of_memory.path + "/memory.limit_in_bytes", std::to_string(768 * mib)));
  const auto in_the_groups = [&] {
    const auto me = std::to_string(getpid());
    write(of_cpu.path + "/cgroup.procs", me);
    write(of_memory.path + "/cgroup.procs", me);
  };
  const Workplace here;
  const Ended doctor = tests::troupe(here, Launch{{"doctor"}, {}, in_the_groups, {}});
  INFO(doctor.out << doctor.err);
  CHECK(doctor.out.find("the control group gives the time of 1, so 1 thread\n") !=
        std::string::npos);
  CHECK(doctor.out.find("the control group may have 0.8 GiB") != std::string::npos);
  CHECK(doctor.out.find("by 1 thread,") != std::string::npos);

  const Workplace place;
  Process head(place, {"head", "--listen", "127.0.0.1:0", "--events", "127.0.0.1:0"});
  REQUIRE(head.says("troupe submit"));
  std::string address;
  std::ifstream(place.path() / "troupe/head") >> address;
  std::string nodes;
  const auto look = [&](pid_t node) {
    CHECK(head.says("node small has joined"));
    nodes = tests::troupe(place, {"nodes", "--head", address, "--output", "json"}).out;
    kill(node, SIGTERM);
  };
  const Ended node = tests::troupe(
      here, Launch{{"node", "--head", address, "--name", "small"}, {}, in_the_groups, look});
  INFO(nodes << node.err);
  CHECK(node.code == 0);
  CHECK(nodes.find("\"cores\":1,") != std::string::npos);
  CHECK(nodes.find("\"memory\":" + std::to_string(768 * mib)) != std::string::npos);
}
