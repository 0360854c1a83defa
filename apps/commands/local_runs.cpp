// `troupe runs --local` and `troupe rm`: runs in the working folder, without a head.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <optional>

#include "apps/client/table.h"
#include "apps/command.h"
#include "apps/events/event_backlog.h"
#include "apps/events/number_text.h"
#include "apps/real/read_host.h"
#include "apps/report/run_events.h"
#include "config/load.h"
#include "core/json.h"
#include "core/threads/real_env.h"
#include "storage/files/claim.h"

namespace troupe::apps {
namespace {

namespace fs = std::filesystem;

/// A run as its folder tells of it.
struct LocalRun {
  std::string name;  // The name of the folder: an earlier run "small" lies in "small.1".
  std::string state;
  std::int64_t step = 0;
  std::optional<std::int64_t> steps;
  std::optional<double> loss, began, ended;
  double bytes = 0;
};

/// Returns whether no process writes to the folder.
bool is_free(storage::Files& files, const std::string& folder) {
  RealEnv env;
  return storage::lock_folder(files, {env, read_host().process_text()}, folder, "wait").ok();
}

double bytes_below(const std::string& folder) {
  double bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->is_regular_file(error) && !error) bytes += static_cast<double>(entry->file_size());
  return bytes;
}

LocalRun read_local_run(storage::Files& files, const std::string& name) {
  const std::string folder = "runs/" + name;
  LocalRun run;
  run.name = name;
  run.state = "unknown";
  run.bytes = bytes_below(folder);
  if (const auto text = read_events(files, folder)) {
    const auto events = parse_events(*text);
    if (!events.state.empty()) run.state = events.state;
    if (!events.steps.empty()) {
      run.step = events.steps.back().step;
      run.loss = events.steps.back().loss;
    }
    run.began = events.began;
    run.ended = events.ended;
  }
  const bool goes_on = run.state == "running" || run.state == "paused";
  if (goes_on && is_free(files, folder)) run.state = "interrupted";
  // A configuration of another version may not load.
  if (const auto loaded = config::load({folder + "/config.toml", {}}))
    run.steps = loaded->config.train.steps;
  return run;
}

/// Returns the time in this machine's zone: "2026-11-26 15:04".
std::string time_text(double seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm local{};
  localtime_r(&time, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local);
  return text;
}

Value to_value(const LocalRun& run) {
  Value value;
  value.set("name", run.name);
  value.set("state", run.state);
  value.set("step", run.step);
  if (run.steps) value.set("steps", *run.steps);
  if (run.loss) value.set("loss", *run.loss);
  if (run.began) value.set("began", *run.began);
  if (run.began && run.ended) value.set("seconds", *run.ended - *run.began);
  value.set("bytes", static_cast<std::int64_t>(run.bytes));
  return value;
}

std::string table_of(const std::vector<LocalRun>& runs) {
  if (runs.empty()) return "no runs in " + fs::current_path().string() + "/runs\n";
  constexpr auto right = Table::Align::right;
  Table table({{"run"},
               {"state"},
               {"step", right},
               {"loss", right},
               {"began"},
               {"took", right},
               {"size", right}});
  for (const auto& run : runs) {
    char loss[32] = "-";
    if (run.loss) std::snprintf(loss, sizeof loss, "%.4f", *run.loss);
    table.add({run.name, run.state,
               std::to_string(run.step) + (run.steps ? "/" + std::to_string(*run.steps) : ""), loss,
               run.began ? time_text(*run.began) : "-",
               run.began && run.ended ? duration(*run.ended - *run.began) : "-",
               memory_text(run.bytes)});
    table.colour(1, tone_of_state(run.state));
  }
  return table.text(form_of(stdout));
}

/// Removes the folder of one run.
Status remove_run(storage::Files& files, const std::string& run) {
  const auto found = folder_of_run(files, run);
  if (!found) return found.error();
  const std::string& folder = *found;
  std::error_code error;
  const auto has = [&](const char* name) { return fs::exists(folder + "/" + name, error); };
  if (!has("events.jsonl") && !has("ledger") && !has("id"))
    return Error{folder + ": this is no folder of a run, which has events.jsonl in it"};
  RealEnv env;
  const auto lock =
      storage::lock_folder(files, {env, read_host().process_text()}, folder, "stop the run first");
  if (!lock) return lock.error();
  fs::remove_all(folder, error);
  if (error) return Error{folder + ": cannot be removed: " + error.message()};
  return Done{};
}

}  // namespace

ExitCode list_local_runs(const CommonFlags& flags) {
  const auto files = storage::disk_files();
  std::vector<LocalRun> runs;
  std::error_code error;
  for (fs::directory_iterator entry("runs", error), end; !error && entry != end;
       entry.increment(error))
    if (entry->is_directory())
      runs.push_back(read_local_run(*files, entry->path().filename().string()));
  std::ranges::sort(runs, [](const LocalRun& a, const LocalRun& b) {
    return a.began != b.began ? a.began > b.began : a.name < b.name;
  });
  if (flags.output == "json")
    for (const auto& run : runs) std::puts(to_json(to_value(run)).c_str());
  else
    std::fputs(table_of(runs).c_str(), stdout);
  return ExitCode::done;
}

namespace {

struct RemoveArguments {
  std::vector<std::string> runs;
};

ExitCode remove_runs(const RemoveArguments& arguments, const CommonFlags& flags) {
  const auto files = storage::disk_files();
  for (const auto& run : arguments.runs) {
    if (auto removed = remove_run(*files, run); !removed) return invalid(removed.error());
    if (!flags.quiet) std::printf("removed %s\n", run.c_str());
  }
  return ExitCode::done;
}

}  // namespace

void add_rm(Program& program) {
  auto [command, arguments] =
      add_command(program, program.app, "rm", "remove the folders of runs", remove_runs);
  command->add_option("runs", arguments.runs, "runs: names or folders")->required();
}

}  // namespace troupe::apps
