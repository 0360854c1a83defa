#include <cstdio>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/events/event_backlog.h"
#include "apps/report/report_page.h"
#include "apps/run/timeline_file.h"
#include "storage/files/files.h"

namespace troupe::apps {
namespace {

struct ReportArguments {
  std::vector<std::string> runs;
  std::string format = "html";
  std::string out;
  std::string title;
};

Result<RunReport> read_run(storage::Files& files, const std::string& name) {
  const std::string folder = folder_of_run(files, name);
  const auto events = read_events(files, folder);
  if (!events)
    return Error{events.error().text + "; a run leaves it in its folder, runs/NAME/events.jsonl"};
  RunReport run{.events = parse_events(*events), .recipe = {}, .timeline = {}};
  if (run.events.name.empty()) run.events.name = name;
  run.recipe = recipe_of(files, run.events);
  const std::string timeline = folder + "/timeline.jsonl";
  // What cannot be inspected cannot be read either, and says why.
  if (const auto there = files.exists(timeline); !there.ok() || *there) {
    if (auto read = read_timeline(files, timeline))
      run.timeline = std::move(*read);
    else
      run.events.warnings.push_back("the timeline cannot be read: " + read.error().text);
  }
  return run;
}

ExitCode report(const ReportArguments& arguments, const CommonFlags&) {
  const auto files = storage::disk_files();
  std::vector<RunReport> runs;
  for (const auto& name : arguments.runs) {
    auto run = read_run(*files, name);
    if (!run) return invalid(run.error());
    runs.push_back(std::move(*run));
  }
  std::string title = arguments.title;
  if (title.empty() && arguments.format == "svg") title = "loss";
  for (const auto& run : runs)
    if (arguments.title.empty() && arguments.format == "html")
      title += (title.empty() ? "" : ", ") + run.events.name;
  const std::string text =
      arguments.format == "svg" ? to_svg(loss_chart(runs, title)) : report_page(runs, title);
  if (arguments.out.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return ExitCode::done;
  }
  if (auto written = storage::replace_file(*files, arguments.out, text); !written)
    return complain(ExitCode::failed, "error: " + written.error().text);
  return ExitCode::done;
}

}  // namespace

void add_report(Program& program) {
  auto [command, arguments] =
      add_command(program, program.app, "report",
                  "what runs did, as one page with charts, or their loss as a picture", report);
  command->add_option("runs", arguments.runs, "names of runs, or their folders")->required();
  command->add_option("--format", arguments.format, "html, or svg: the loss alone")
      ->check(CLI::IsMember({"html", "svg"}));
  command->add_option("--out", arguments.out, "a file; else standard output");
  command->add_option("--title", arguments.title, "what stands above it");
}

}  // namespace troupe::apps
