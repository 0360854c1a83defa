#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "catch.h"

namespace fs = std::filesystem;

namespace {

using Words = std::set<std::string>;

/// The folders whose sources get their clock, loops, random numbers and end of the process from
/// core/env.h, and the facts of their machine from apps/host_facts.h, so that a simulator can
/// replace them.
const std::vector<std::string> folders = {"actors",    "apps/events", "apps/head",
                                          "apps/node", "apps/run",    "storage"};

/// The words that a source may name only with an exception.
const Words forbidden = {
    "std::thread",
    "std::jthread",
    "condition_variable",
    "std::future",
    "std::promise",
    "std::async",
    "std::latch",
    "std::barrier",
    "sleep_for",
    "sleep_until",
    "Clock::now",
    "clock::now",
    "clock_gettime",
    "system_clock",
    "random_device",
    "_Exit",
    "std::abort",
    "std::exit",
    "fopen",
    "std::signal",
    "alarm(",
    "std::time(",
    "gethostname",
    "getpid(",
    "own_machine_share(",
    "hardware_concurrency",
    "RealSystem",
    "ComputingThread",
    "DeviceThread",
    "RealExecutors",
    "RealProcesses",
    "fork()",
    "execve(",
};

/// Sources that still name some of this. The list only shrinks: the test fails for a word that a
/// source does not name any more.
const std::map<std::string, Words> exceptions = {
    // The actor systems of main functions.
    {"actors/caf_shim.h", {"RealSystem"}},
    // Executors and their threads, which main functions hand down.
    {"actors/executors.h", {"ComputingThread", "DeviceThread", "RealExecutors"}},
    {"actors/device_thread.cpp", {"Clock::now", "DeviceThread", "sleep_for"}},
    {"actors/device_thread.h", {"DeviceThread", "std::thread"}},
    {"actors/executor.cpp",
     {"Clock::now", "clock_gettime", "ComputingThread", "std::future", "std::promise"}},
    {"actors/executor.h", {"ComputingThread", "std::thread"}},
    {"actors/job_queue.cpp", {"clock::now"}},
    {"actors/pace.h", {"Clock::now", "sleep_for"}},
    // Links between GPUs, which are not simulated.
    {"actors/nodes/mesh_edges.cpp", {"clock::now"}},
    // Plans for this machine's memory, which `troupe plan` and `troupe train` make.
    {"apps/run/plan_request.cpp", {"own_machine_share("}},
    // The status page, which is not simulated.
};

/// The only sources that include a header. All others take an environment, a loop or a network from
/// their callers.
const std::map<std::string, std::set<std::string>> includers = {
    // Main functions and benchmarks.
    {"core/threads/real_env.h",
     {"apps/client/client_network.h", "apps/commands/checkpoint.cpp", "apps/commands/head.cpp",
      "apps/commands/local_runs.cpp", "apps/commands/node.cpp", "apps/commands/train.cpp",
      "apps/commands/verify.cpp", "apps/real/real_context.h", "bench/bench_lineup.cpp",
      "bench/crowd.cpp", "core/threads/real_env.cpp"}},
    {"transport/real_network.h",
     {"apps/client/client_network.h", "apps/commands/node.cpp", "apps/commands/train.cpp",
      "apps/real/real_context.h", "transport/real_network.cpp"}},
    {"apps/real/real_context.h",
     {"apps/commands/head.cpp", "apps/commands/play.cpp", "apps/node/node_process.cpp"}},
    {"apps/real/read_host.h",
     {"apps/commands/checkpoint.cpp", "apps/commands/follow.cpp", "apps/commands/head.cpp",
      "apps/commands/local_runs.cpp", "apps/commands/train.cpp", "apps/commands/verify.cpp",
      "apps/real/read_host.cpp", "apps/real/real_context.h"}},
    {"apps/real/real_processes.h",
     {"apps/commands/head.cpp", "apps/commands/node.cpp", "apps/commands/play.cpp",
      "apps/commands/train.cpp", "apps/real/real_processes.cpp"}},
    // The parts of the real environment and the real network.
    {"core/threads/worker.h", {"core/threads/real_env.cpp", "core/threads/worker.cpp"}},
    {"transport/control/zmq_sockets.h",
     {"transport/control/control_client.cpp", "transport/control/control_server.cpp",
      "transport/control/publisher.cpp", "transport/control/subscriber.cpp",
      "transport/real_network.cpp"}},
    // Benchmarks measure the carriers of channels.
    {"transport/channels/shm_channel.h",
     {"bench/channel_side.cpp", "transport/channels/shm_receiver.cpp",
      "transport/channels/shm_sender.cpp", "transport/real_network.cpp"}},
    {"transport/channels/tcp_channel.h",
     {"bench/channel_side.cpp", "bench/peers/channel_peer.cpp",
      "transport/channels/tcp_receiver.cpp", "transport/channels/tcp_sender.cpp",
      "transport/real_network.cpp"}},
    {"transport/channels/local_channel.h",
     {"bench/transport_bench.cpp", "transport/channels/local_channel.cpp"}},
};

bool is_source(const fs::path& path) {
  const auto extension = path.extension();
  return extension == ".h" || extension == ".cpp" || extension == ".cu";
}

/// Calls a function for each line of each source of a folder, without its comment.
template <class Look>
void for_each_line(const std::string& folder, Look look) {
  const fs::path root = TROUPE_ROOT;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    if (!is_source(entry.path())) continue;
    const auto name = fs::relative(entry.path(), root).string();
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) look(name, line.substr(0, line.find("//")));
  }
}

}  // namespace

TEST_CASE("clocks, threads, random numbers and ends of the process come from outside", "[house]") {
  std::map<std::string, Words> found;
  std::size_t lines = 0;
  for (const auto& folder : folders)
    for_each_line(folder, [&](const std::string& name, const std::string& line) {
      ++lines;
      for (const auto& word : forbidden)
        if (line.find(word) != std::string::npos) found[name].insert(word);
    });
  REQUIRE(lines > 10'000);
  for (const auto& [name, words] : found)
    for (const auto& word : words) {
      INFO(name << " names " << word << "; take it from core/env.h or apps/host_facts.h");
      const auto excepted = exceptions.find(name);
      CHECK((excepted != exceptions.end() && excepted->second.contains(word)));
    }
  for (const auto& [name, words] : exceptions)
    for (const auto& word : words) {
      INFO(name << " does not name " << word << " any more; remove the exception");
      CHECK(found[name].contains(word));
    }
}

TEST_CASE("only main functions and commands open the real disk", "[house]") {
  for (const char* folder :
       {"actors", "apps/head", "apps/node", "apps/run", "apps/events", "transport"})
    for_each_line(folder, [&](const std::string& name, const std::string& line) {
      INFO(name << " opens the disk; take storage::Files from the caller");
      CHECK(line.find("disk_files(") == std::string::npos);
    });
}

TEST_CASE("only main functions make the real environment and the real network", "[house]") {
  std::map<std::string, std::set<std::string>> found;
  for (const char* folder : {"actors", "apps", "bench", "config", "core", "models", "schedules",
                             "simulation", "storage", "transport"})
    for_each_line(folder, [&](const std::string& name, const std::string& line) {
      for (const auto& [header, unused] : includers)
        if (line == "#include \"" + header + "\"") found[header].insert(name);
    });
  CHECK(found == includers);
}
