#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "apps/client/head_address.h"
#include "apps/command.h"
#include "apps/commands/remote_arguments.h"
#include "apps/events/terminal_width.h"
#include "apps/gpu/gpus.h"
#include "apps/hosts/gpu_checks.h"
#include "apps/hosts/host_survey.h"
#include "apps/hosts/machine_checks.h"
#include "apps/hosts/nvml.h"
#include "apps/hosts/place_checks.h"
#include "core/json.h"

namespace troupe::apps {
namespace {

struct DoctorArguments {
  std::string hosts;
  RemoteArguments remote;
  std::string keys;
  bool without_links = false;
};

/// Prints checks as they come, and records whether one has failed.
class Findings {
 public:
  explicit Findings(const CommonFlags& flags)
      : json_(flags.output == "json"), quiet_(flags.quiet) {}

  void add(const Check& check) { add("", check); }
  void add(const std::string& host, const Check& check) {
    failed_ |= check.verdict == Verdict::fail;
    const bool is_fine = check.verdict == Verdict::ok || check.verdict == Verdict::skip;
    if (json_) {
      Value event = to_event(check);
      if (!host.empty()) event.set("host", host);
      std::printf("%s\n", to_json(event).c_str());
    } else if (!quiet_ || !is_fine) {
      print_lines(host, to_text(check));
    }
    std::fflush(stdout);
  }
  ExitCode exit_code() const { return failed_ ? ExitCode::doctor_failed : ExitCode::done; }

 private:
  static void print_lines(const std::string& host, const std::string& text) {
    const std::string prefix = host.empty() ? "" : host + ": ";
    for (std::size_t at = 0; at < text.size();) {
      const auto end = text.find('\n', at) + 1;
      print_columns(prefix + text.substr(at, end - at));
      at = end;
    }
  }

  bool json_;
  bool quiet_;
  bool failed_ = false;
};

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Result<std::vector<actors::GpuReading>> read_gpus_by_nvml() {
  const auto nvml = Nvml::open();
  return nvml ? nvml->read() : nvml.error();
}

ExitCode examine_here(const DoctorArguments& arguments, const CommonFlags& flags) {
  Findings findings(flags);
  const auto build = read_build();
  const auto processor = read_processor();
  const auto cores = read_cores();
  const auto interfaces = read_interfaces();
  const auto readings = read_gpus_by_nvml();
  // Takes the larger count, since a container may give devices unusual names.
  const int gpus = std::max(read_gpus(), readings ? static_cast<int>(readings->size()) : 0);
  findings.add(judge_build(build));
  findings.add(judge_libraries(read_libraries()));
  findings.add(judge_processor(processor));
  findings.add(judge_cores(cores));
  findings.add(judge_memory(read_memory()));
  findings.add(judge_shared_memory(read_shared_memory()));
  findings.add(judge_open_files(read_open_files()));
  findings.add(judge_locked_memory(read_locked_memory(), gpus));
  findings.add(judge_gpus(gpus, count_gpus()));
  findings.add(judge_gpu_libraries(gpu_libraries(), gpu_compiler(), gpus));
  if (!readings) findings.add(judge_gpu_driver(readings.error(), gpus));
  if (readings)
    for (const auto& gpu : *readings) findings.add(judge_gpu(gpu));
  findings.add(judge_loopback(try_loopback()));
  findings.add(judge_interfaces(interfaces));
  findings.add(judge_ports({try_port(usual_head_port), try_port(usual_head_port + 1)}));
  findings.add(judge_clock(read_clock()));
  findings.add(judge_disk(try_disk("runs")));
  findings.add(check_keys(arguments.keys));
  const auto speed = measure_speed(cores.used);
  findings.add(judge_speed(speed));
  if (flags.output == "json") {
    const Interface* chosen = choose_interface(interfaces);
    std::printf("%s\n", to_json(to_event(HostReport{.host = {},
                                                    .version = build.version,
                                                    .determinism = determinism_class(processor),
                                                    .address = chosen ? chosen->address : "",
                                                    .wall = wall_seconds(),
                                                    .cores = cores.used,
                                                    .operations = speed.operations,
                                                    .ahead = 0}))
                            .c_str());
  }
  return findings.exit_code();
}

ExitCode examine_hosts(const DoctorArguments& arguments, const CommonFlags& flags) {
  const auto hosts = read_hostfile(arguments.hosts);
  if (!hosts) return complain(ExitCode::invalid, hosts.error().text);
  const auto place = RemotePlace::like_here(arguments.remote.program, arguments.remote.folder);
  if (!place) return complain(ExitCode::invalid, place.error().text);
  Findings findings(flags);
  const auto reports =
      survey_hosts(*hosts, *place,
                   [&](const std::string& host, const Check& check) { findings.add(host, check); });
  findings.add(judge_versions(TROUPE_VERSION, reports));
  findings.add(judge_clocks(reports));
  findings.add(judge_processors(reports));
  findings.add(judge_speeds(reports));
  if (!arguments.without_links)
    for (const auto& check : judge_links(survey_links(reports, *place))) findings.add(check);
  return findings.exit_code();
}

ExitCode doctor(const DoctorArguments& arguments, const CommonFlags& flags) {
  return arguments.hosts.empty() ? examine_here(arguments, flags) : examine_hosts(arguments, flags);
}

}  // namespace

void add_doctor(Program& program) {
  auto [command, arguments] =
      add_command(program, program.app, "doctor", "check whether machines can run Troupe", doctor);
  command->add_option("--hosts", arguments.hosts,
                      "check all machines of a hostfile over ssh, and the network between them");
  arguments.remote.add_to(*command);
  command->add_flag("--without-links", arguments.without_links,
                    "skip the measurements between machines");
  command->add_option("--keys", arguments.keys, "also check this key file")->envname("TROUPE_KEYS");
}

}  // namespace troupe::apps
