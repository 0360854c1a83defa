#include "schedules/trace.h"

#include <cstdio>
#include <string>

#include "apps/command.h"
#include "apps/timeline_file.h"
#include "storage/files.h"

namespace troupe::apps {
namespace {

struct ExportArguments {
  std::string run;
  std::string out;
};

/// A run is named as its folder below runs/ is, or by the folder itself.
std::string timeline_of(storage::Files& files, const std::string& run) {
  const std::string below = "runs/" + run + "/timeline.jsonl";
  return files.exists(below) ? below : run + "/timeline.jsonl";
}

ExitCode export_trace(const ExportArguments& arguments, const CommonFlags&) {
  const auto files = storage::disk_files();
  const auto timeline = read_timeline(*files, timeline_of(*files, arguments.run));
  if (!timeline)
    return complain(ExitCode::invalid,
                    "error: " + timeline.error().text +
                        "; a run leaves it when it ends, in runs/NAME/timeline.jsonl");
  const std::string trace = schedules::to_trace(*timeline);
  if (arguments.out.empty()) {
    std::fputs(trace.c_str(), stdout);
    return ExitCode::done;
  }
  if (auto written = storage::replace_file(*files, arguments.out, trace); !written)
    return complain(ExitCode::failed, "error: " + written.error().text);
  return ExitCode::done;
}

}  // namespace

void add_trace(Program& program) {
  CLI::App& group = add_group(program, "trace", "what the devices of a run did, and when");
  auto [command, arguments] =
      add_command(program, group, "export",
                  "the measured timeline of the last rounds, as Perfetto reads it", export_trace);
  command->add_option("run", arguments.run, "a run's name, or its folder")->required();
  command->add_option("--out", arguments.out, "a file; else standard output");
}

}  // namespace troupe::apps
