#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "apps/command.h"
#include "apps/commands/usage.h"
#include "apps/gpu/gpus.h"
#include "apps/machine/machine_share.h"
#include "apps/machine/this_machine.h"
#include "bench/gpu_kernels.h"
#include "bench/kernel_bench.h"
#include "bench/link.h"
#include "bench/train/rows.h"
#include "bench/train_bench.h"
#include "bench/transport_bench.h"
#include "core/json.h"
#include "storage/files/files.h"

namespace troupe::apps {
namespace {

struct KernelArguments {
  int threads = 1;
  int rounds = 9;
  std::string precision = "fp32";
  std::string profile;
};

/// Writes the profile that `troupe plan --profile` reads.
Status write_profile(const KernelArguments& arguments) {
  const auto precision =
      arguments.precision == "bf16" ? kernels::fastest_bf16() : kernels::Precision::fp32;
  // Measures one device as if devices with this many threads shared all cores.
  const int cores = own_machine_share().cores();
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

struct GpuArguments {
  bench::GptSize size;
  bench::GpuEffort effort;
  std::string precision = "bf16";
};

ExitCode gpu(const GpuArguments& arguments, const CommonFlags&) {
  const auto problem = [](const Error& error) {
    return complain(ExitCode::failed, "error: " + error.text);
  };
  if (const auto libraries = gpu_libraries(); !libraries) return problem(libraries.error());
  auto device =
      open_gpu(0, [](const std::string& remark) { std::fprintf(stderr, "%s\n", remark.c_str()); });
  if (!device) return problem(device.error());
  auto source = gpu_memory(0);
  if (!source) return problem(source.error());
  MemoryPool memory(std::move(*source));
  (*device)->enter();
  Stream stream(memory, **device);
  const auto precision =
      arguments.precision == "bf16" ? kernels::Precision::bf16_gpu : kernels::Precision::fp16_gpu;
  const auto figures =
      bench::measure_gpu_kernels(stream, arguments.size, precision, arguments.effort);
  if (!figures) return problem(figures.error());
  std::fputs(bench::to_table(arguments.size, *figures).c_str(), stdout);
  return ExitCode::done;
}

struct TransportArguments {
  int rounds = 9;
};

ExitCode transport(const TransportArguments& arguments, const CommonFlags&) {
  const auto text = bench::measure_transport(arguments.rounds);
  if (!text) return complain(ExitCode::failed, "error: " + text.error().text);
  std::fputs(text->c_str(), stdout);
  return ExitCode::done;
}

struct TrainArguments {
  std::string model;  // Empty: all models.
  int rounds = 3;
  bool alone = false;
  std::string instructions;
  std::string python;
};

ExitCode train(const TrainArguments& arguments, const CommonFlags& flags) {
  std::vector<std::string> missing;
  if (bench::named_sets(arguments.instructions, missing).empty() && !missing.empty())
    return invalid({"--isa: " + missing.front()});
  bench::TrainBench wanted;
  wanted.program = std::filesystem::read_symlink("/proc/self/exe");
  wanted.version = "troupe " TROUPE_VERSION;
  wanted.models = bench::train_bench_models();
  if (!arguments.model.empty()) wanted.models = {arguments.model};
  wanted.rounds = arguments.rounds;
  wanted.alone = arguments.alone;
  wanted.instructions = arguments.instructions;
  wanted.python = arguments.python;
  wanted.progress = [quiet = flags.quiet](const std::string& line) {
    if (!quiet) std::fprintf(stderr, "%s\n", line.c_str());
  };
  wanted.table = [](const std::string& text) {
    std::puts(text.c_str());
    std::fflush(stdout);
  };
  bench::measure_train(wanted);
  return ExitCode::done;
}

struct LinkArguments {
  std::string address;
  std::string listen;
};

constexpr auto link_patience = std::chrono::seconds(30);

ExitCode answer_link(const LinkArguments& arguments, const CommonFlags& flags) {
  auto answer = bench::LinkAnswer::listen(arguments.listen);
  if (!answer) return complain(ExitCode::failed, "error: " + answer.error().text);
  std::printf("%s\n", answer->address().c_str());
  std::fflush(stdout);
  if (!flags.quiet && isatty(STDOUT_FILENO))
    std::fputs("on the other machine: troupe bench link ADDRESS, with the line above\n", stderr);
  if (auto served = answer->serve(link_patience); !served)
    return complain(ExitCode::failed, "error: " + served.error().text);
  return ExitCode::done;
}

ExitCode link(const LinkArguments& arguments, const CommonFlags& flags) {
  if (arguments.address.empty() == arguments.listen.empty())
    return complain(ExitCode::usage,
                    "error: either --listen INTERFACE, or the address that the other machine "
                    "printed");
  if (!arguments.listen.empty()) return answer_link(arguments, flags);
  const auto figures = bench::ask_link(arguments.address, link_patience);
  if (!figures) return complain(ExitCode::failed, "error: " + figures.error().text);
  if (flags.output == "json") {
    Value event = Value::Map{};
    event.set("type", "link");
    event.set("latency", figures->latency);
    event.set("bandwidth", figures->bandwidth);
    event.set("encrypted", figures->encrypted);
    std::printf("%s\n", to_json(event).c_str());
  } else {
    std::printf(
        "%.1f us for 64 bytes one way, %.2f GB/s with tensors of 16 MiB, %.2f GB/s encrypted\n",
        figures->latency * 1e6, figures->bandwidth * 1e-9, figures->encrypted * 1e-9);
  }
  return ExitCode::done;
}

}  // namespace

void add_bench(Program& program) {
  CLI::App& group = add_group(program, "bench", "benchmark this machine, relative to its peak");
  {
    auto [command, arguments] =
        add_command(program, group, "transport",
                    "benchmark each transport between two processes of this machine", transport);
    command
        ->add_option("--rounds", arguments.rounds,
                     "number of repetitions; the median is reported (default: 9)")
        ->check(CLI::Range(1, 1000));
  }
  {
    auto [command, arguments] =
        add_command(program, group, "train",
                    "train two GPT models, and compare with PyTorch; takes minutes", train);
    command->add_flag("--alone", arguments.alone, "skip the comparison with PyTorch");
    command->add_option("--isa", arguments.instructions,
                        "vector instructions to measure with, one after the other: avx2,avx512 "
                        "(default: the best of the processor)");
    command->add_option("--python", arguments.python,
                        "a Python with the PyTorch to compare with (default: one that is made in "
                        "build/peer-venv of the sources)");
    command->add_option("--model", arguments.model, "train only this model (default: both)")
        ->check(CLI::IsMember(bench::train_bench_models()));
    command
        ->add_option("--rounds", arguments.rounds,
                     "number of repetitions; the median is reported (default: 3)")
        ->check(CLI::Range(1, 1000));
  }
  {
    auto [command, arguments] = add_command(
        program, group, "link", "benchmark tensors over TCP between two machines", link);
    command->add_option("address", arguments.address,
                        "the address that the listening machine printed");
    command->add_option("--listen", arguments.listen,
                        "listen on this address of this machine and answer");
  }
  {
    auto [command, arguments] =
        add_command(program, group, "gpu",
                    "benchmark the GPU kernels that train a GPT, relative to the GPU's peak", gpu);
    auto& size = arguments.size;
    const auto add_size = [&to = *command](const char* name, std::int64_t& value,
                                           const char* what) {
      to.add_option(name, value, what)->check(above_zero())->capture_default_str();
    };
    add_size("--micro", size.micro, "samples in a micro-batch");
    add_size("--context", size.context, "tokens in a sample");
    add_size("--layers", size.layers, "layers");
    add_size("--width", size.width, "hidden size");
    add_size("--heads", size.heads, "attention heads");
    add_size("--vocab", size.vocab, "vocabulary size");
    command->add_option("--precision", arguments.precision, "bf16 or fp16 (default: bf16)")
        ->check(CLI::IsMember({"bf16", "fp16"}));
    command
        ->add_option("--rounds", arguments.effort.rounds,
                     "number of repetitions; the median is reported (default: 9)")
        ->check(CLI::Range(1, 1000));
  }
  auto [command, arguments] =
      add_command(program, group, "kernels", "benchmark the most expensive CPU kernels", kernels);
  command->add_option("--threads", arguments.threads, "threads per device (default: 1)")
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--rounds", arguments.rounds,
                   "number of repetitions; the median is reported (default: 9)")
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--precision", arguments.precision,
                   "with --profile: fp32 or bf16 (default: fp32)")
      ->check(CLI::IsMember({"fp32", "bf16"}));
  command->add_option("--profile", arguments.profile,
                      "write the measurements to a file for `troupe plan --profile`");
}

}  // namespace troupe::apps
