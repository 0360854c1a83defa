#include "apps/real/read_host.h"

#include <unistd.h>

#include <climits>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "apps/hosts/interfaces.h"
#include "apps/hosts/machine_checks.h"
#include "apps/machine/machine_share.h"
#include "apps/machine/measure_units.h"
#include "apps/run/run_setup.h"

namespace troupe::apps {
namespace {

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] ? name : "node";
}

std::vector<std::string> command_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

}  // namespace

HostFacts read_host() {
  HostFacts facts;
  facts.host = host_name();
  facts.process = ::getpid();
  const auto share = own_machine_share();
  facts.cores = share.cores();
  facts.memory = share.memory();
  facts.numa_nodes = read_cores().numa_nodes;
  facts.precision = to_string(best_precision_here());
  for (const auto& interface : read_interfaces())
    if (interface.is_up && !interface.is_loopback && !is_virtual_bridge(interface.name))
      facts.networks.push_back({interface.name, interface.address, interface.megabits});
  facts.command = command_words();
  std::error_code error;
  facts.folder = std::filesystem::current_path(error).string();
  facts.thread_stacks = [] { return thread_stacks(); };
  facts.unit_times = nominal_unit_times;
  return facts;
}

}  // namespace troupe::apps
