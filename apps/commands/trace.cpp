#include "schedules/formats/trace.h"

#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>

#include "apps/command.h"
#include "apps/report/run_events.h"
#include "apps/run/memory_file.h"
#include "apps/run/timeline_file.h"
#include "schedules/formats/run_profile.h"
#include "storage/files/files.h"

namespace troupe::apps {
namespace {

struct ExportArguments {
  std::string run;
  std::string format = "perfetto";
  std::string out;
};

Result<std::string> perfetto_trace(storage::Files& files, const std::string& folder) {
  const auto timeline = read_timeline(files, folder + "/timeline.jsonl");
  if (!timeline)
    return Error{timeline.error().text +
                 "; a run leaves it when it ends, in runs/NAME/timeline.jsonl"};
  return schedules::to_trace(*timeline);
}

/// Returns the profile of a run. The timeline may be missing, since a run writes it only at its
/// end; the memory file exists from the beginning.
Result<std::string> pprof_profile(storage::Files& files, const std::string& folder) {
  const std::string held = folder + "/memory.jsonl";
  const std::string played = folder + "/timeline.jsonl";
  const auto has_memory = files.exists(held);
  if (!has_memory.ok()) return has_memory.error();
  if (!*has_memory)
    return Error{held +
                 ": it is not there; wanted what each device holds, which a run leaves there as it "
                 "begins, from this version on; resume the run with this version, or run it again"};
  const auto memory = read_memory(files, held);
  if (!memory) return memory.error();
  std::optional<schedules::Timeline> timeline;
  const auto has_timeline = files.exists(played);
  if (!has_timeline.ok()) return has_timeline.error();
  if (*has_timeline) {
    auto read = read_timeline(files, played);
    if (!read) return read.error();
    timeline = std::move(*read);
  } else {
    std::fprintf(stderr,
                 "warning: %s: it is not there; a run leaves it when it ends: the profile has "
                 "memory, and neither time nor actions\n",
                 played.c_str());
  }
  auto profile = schedules::run_profile(*memory, timeline);
  profile.comments.push_back("made by troupe " TROUPE_VERSION);
  return schedules::to_pprof(profile);
}

ExitCode export_trace(const ExportArguments& arguments, const CommonFlags&) {
  const bool is_binary = arguments.format == "pprof";
  if (is_binary && arguments.out.empty() && isatty(STDOUT_FILENO) == 1)
    return complain(ExitCode::usage,
                    "error: a pprof file is nothing for a terminal; name a file with --out");
  const auto files = storage::disk_files();
  const auto folder = folder_of_run(*files, arguments.run);
  if (!folder) return invalid(folder.error());
  const auto made = is_binary ? pprof_profile(*files, *folder) : perfetto_trace(*files, *folder);
  if (!made) return invalid(made.error());
  if (arguments.out.empty()) {
    std::fwrite(made->data(), 1, made->size(), stdout);
    return ExitCode::done;
  }
  if (auto written = storage::replace_file(*files, arguments.out, *made); !written)
    return complain(ExitCode::failed, "error: " + written.error().text);
  return ExitCode::done;
}

}  // namespace

void add_trace(Program& program) {
  CLI::App& group = add_group(program, "trace", "export the device timeline and memory of a run");
  auto [command, arguments] = add_command(
      program, group, "export",
      "export what devices did in the last rounds, and what their memory holds, for other programs",
      export_trace);
  command->add_option("run", arguments.run, "a run's name or folder")->required();
  command
      ->add_option("--format", arguments.format,
                   "perfetto: the measured timeline; pprof: memory by stage, layer and purpose, "
                   "and time by stage and action (default: perfetto)")
      ->check(CLI::IsMember({"perfetto", "pprof"}));
  command->add_option("--out", arguments.out, "output file (default: standard output)");
}

}  // namespace troupe::apps
