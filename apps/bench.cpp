#include <algorithm>
#include <cstdio>
#include <thread>

#include "apps/command.h"
#include "apps/this_machine.h"
#include "bench/kernel_bench.h"
#include "storage/files.h"

namespace troupe::apps {
namespace {

struct KernelArguments {
  int threads = 1;
  int rounds = 9;
  std::string precision = "fp32";
  std::string profile;
};

/// The file that `troupe plan --profile` reads.
Status write_profile(const KernelArguments& arguments) {
  const auto precision =
      arguments.precision == "bf16" ? kernels::fastest_bf16() : kernels::Precision::fp32;
  // One device with so many threads is what is left when all cores are shared by as many devices.
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const auto profile = measure_this_machine(std::max(1, cores / arguments.threads), precision);
  const auto files = storage::disk_files();
  return storage::replace_file(*files, arguments.profile, schedules::to_json(profile));
}

ExitCode kernels(const KernelArguments& arguments, const CommonFlags& flags) {
  if (!arguments.profile.empty()) {
    if (auto written = write_profile(arguments); !written)
      return complain(ExitCode::failed, "error: --profile: " + written.error().text);
    if (!flags.quiet) std::printf("%s\n", arguments.profile.c_str());
    return ExitCode::done;
  }
  std::fputs(bench::to_table(bench::measure_kernels(arguments.threads, arguments.rounds)).c_str(),
             stdout);
  return ExitCode::done;
}

}  // namespace

void add_bench(Program& program) {
  CLI::App& group = add_group(program, "bench", "what this machine does, in ratios to its peak");
  auto [command, arguments] =
      add_command(program, group, "kernels", "the kernels that do most of the work", kernels);
  command->add_option("--threads", arguments.threads, "threads of a device")
      ->check(CLI::Range(1, 1024));
  command->add_option("--rounds", arguments.rounds, "the median of so many")
      ->check(CLI::Range(1, 1000));
  command->add_option("--precision", arguments.precision, "with --profile: fp32 or bf16")
      ->check(CLI::IsMember({"fp32", "bf16"}));
  command->add_option("--profile", arguments.profile,
                      "write what was measured to a file, for `troupe plan --profile`");
}

}  // namespace troupe::apps
