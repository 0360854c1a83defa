#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "apps/command.h"
#include "apps/events/event_backlog.h"
#include "apps/page/history_file.h"
#include "apps/page/run_about.h"
#include "apps/report/report_page.h"
#include "apps/report/steps_csv.h"
#include "core/json.h"
#include "storage/files/files.h"

namespace troupe::apps {
namespace {

constexpr int pages_at_once = 64;

struct ReportArguments {
  std::vector<std::string> runs;
  std::string format = "html";
  std::string out;
  std::string title;
};

Result<RunReport> read_run(storage::Files& files, const std::string& name) {
  const auto folder = folder_of_run(files, name);
  if (!folder) return folder.error();
  const auto events = read_events(files, *folder);
  if (!events)
    return Error{events.error().text + "; a run leaves it in its folder, runs/NAME/events.jsonl"};
  RunReport run{.events = parse_events(*events),
                .history = {},
                .about = about_run(files, *folder),
                .config = config_of_run(files, *folder)};
  if (run.events.name.empty()) run.events.name = name;
  HistoryFile history(files, *folder + "/events.jsonl");
  while (!history.read_on(pages_at_once)) {
  }
  auto value = parse_json(history.json());
  if (!value) return value.error();
  run.history = std::move(*value);
  return run;
}

std::string name_of_folder(const std::string& folder) {
  const auto path = std::filesystem::path(folder).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

ExitCode report(const ReportArguments& arguments, const CommonFlags&) {
  const auto files = storage::disk_files();
  std::vector<RunReport> runs;
  for (const auto& name : arguments.runs) {
    auto run = read_run(*files, name);
    if (!run) return invalid(run.error());
    runs.push_back(std::move(*run));
  }
  // An earlier run of a name is in another folder: runs/quickstart.1.
  std::map<std::string, int> with_name;
  for (const auto& run : runs) ++with_name[run.events.name];
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (with_name[runs[i].events.name] > 1) runs[i].events.name = name_of_folder(arguments.runs[i]);
  std::string title = arguments.title;
  if (title.empty() && arguments.format == "svg") title = "loss";
  for (const auto& run : runs)
    if (arguments.title.empty() && arguments.format == "html")
      title += (title.empty() ? "" : ", ") + run.events.name;
  const std::string text = arguments.format == "svg"   ? to_svg(loss_chart(runs, title))
                           : arguments.format == "csv" ? steps_csv(runs)
                                                       : report_page(runs, title);
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
                  "write a page with charts of runs, or their steps as CSV", report);
  command->add_option("runs", arguments.runs, "runs: names or folders")->required();
  command
      ->add_option("--format", arguments.format,
                   "html, svg for the loss only, or csv for spreadsheets (default: html)")
      ->check(CLI::IsMember({"html", "svg", "csv"}));
  command->add_option("--out", arguments.out, "output file (default: standard output)");
  command->add_option("--title", arguments.title, "title of the page");
}

}  // namespace troupe::apps
