#include <cstdio>
#include <iterator>

#include "apps/command.h"
#include "apps/events/event_backlog.h"
#include "apps/report/run_events.h"
#include "apps/run/run_setup.h"
#include "core/json.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/checkpoint/ledger.h"
#include "storage/files/files.h"
#include "storage/files/records.h"

namespace troupe::apps {
namespace {

struct AuditArguments {
  std::string run;
  bool reads_data = false;
};

/// Opens the data of a run as the configuration in its folder says.
Result<std::shared_ptr<const storage::Dataset>> data_of_run(storage::Files& files,
                                                            const std::string& folder) {
  const auto loaded = config::load({folder + "/config.toml", {}});
  if (!loaded) return loaded.error();
  auto setup = set_up(files, loaded->config);
  if (!setup) return setup.error();
  return setup->train;
}

/// Returns a flaw if the newest complete checkpoint contains steps that the ledger has not
/// committed.
std::string flaw_of_newest(storage::Files& files, const std::string& folder,
                           const storage::Audit& audit) {
  std::string root = folder + "/checkpoints";
  if (const auto events = read_events(files, folder))
    if (const auto run = parse_events(*events); !run.checkpoints.empty())
      root = storage::parent_of(run.checkpoints.back());
  const auto listed = storage::list_checkpoints(files, root);
  if (!listed) return {};
  for (const auto& checkpoint : *listed) {
    if (checkpoint.state != storage::ListedCheckpoint::State::complete) continue;
    const bool is_known = checkpoint.step <= audit.steps;
    if (is_known && checkpoint.manifest->samples * audit.steps == audit.samples * checkpoint.step)
      return {};
    return checkpoint.directory + " is of " + std::to_string(checkpoint.manifest->samples) +
           " samples in " + std::to_string(checkpoint.step) + " steps, but " +
           std::to_string(audit.steps) + " steps of " + std::to_string(audit.samples) +
           " samples are committed";
  }
  return {};
}

void set_mixture(const storage::Audit& audit, Value& value) {
  Value::List sources, phases;
  for (const auto& source : audit.sources) {
    Value counted;
    counted.set("source", source.name);
    counted.set("samples", source.samples);
    counted.set("passes", source.passes);
    sources.push_back(std::move(counted));
  }
  for (const auto& phase : audit.phases) {
    Value counted;
    counted.set("first", phase.first);
    counted.set("last", phase.last);
    counted.set("samples", Value::List(phase.of_sources.begin(), phase.of_sources.end()));
    phases.push_back(std::move(counted));
  }
  value.set("sources", std::move(sources));
  value.set("phases", std::move(phases));
}

Value to_value(const std::string& folder, const storage::Audit& audit) {
  Value value;
  value.set("run", folder);
  value.set("steps", audit.steps);
  value.set("samples", audit.samples);
  value.set("passes", audit.passes);
  value.set("attempts", audit.attempts);
  value.set("skipped", audit.skipped);
  if (!audit.left_out.empty())
    value.set("left_out", Value::List(audit.left_out.begin(), audit.left_out.end()));
  value.set("taken_back", audit.taken_back);
  value.set("torn", audit.is_torn);
  value.set("read_again", audit.read_again);
  if (!audit.sources.empty()) set_mixture(audit, value);
  value.set("good", audit.flaw.empty());
  if (!audit.flaw.empty()) value.set("flaw", audit.flaw);
  return value;
}

void print_mixture(const storage::Audit& audit) {
  const auto number = [](std::int64_t n) { return static_cast<long long>(n); };
  for (const auto& source : audit.sources)
    std::printf("%s: %lld samples, %lld complete epochs\n", source.name.c_str(),
                number(source.samples), number(source.passes));
  for (const auto& phase : audit.phases) {
    std::string counts;
    for (std::size_t i = 0; i < phase.of_sources.size(); ++i)
      if (phase.of_sources[i] > 0)
        counts += (counts.empty() ? "" : ", ") + std::to_string(phase.of_sources[i]) + " of " +
                  audit.sources[i].name;
    std::printf("steps %lld to %lld: %s\n", number(phase.first), number(phase.last),
                counts.c_str());
  }
}

void print(const std::string& folder, const storage::Audit& audit) {
  const auto number = [](std::int64_t n) { return static_cast<long long>(n); };
  std::printf("%s: %lld steps of %lld samples are committed: %lld complete epochs\n",
              folder.c_str(), number(audit.steps), number(audit.samples), number(audit.passes));
  const auto overflowed = audit.skipped - std::ssize(audit.left_out);
  if (overflowed > 0)
    std::printf(
        "%lld of them changed no weights, because gradients overflowed in fp16 or no target "
        "counted\n",
        number(overflowed));
  if (!audit.left_out.empty()) {
    std::string steps;
    for (const auto step : audit.left_out)
      steps += (steps.empty() ? "" : ", ") + std::to_string(step);
    std::printf("%lld of them changed no weights, because their samples were left out: step %s\n",
                number(std::ssize(audit.left_out)), steps.c_str());
  }
  std::printf("attempts: %lld; repeated steps: %lld%s\n", number(audit.attempts),
              number(audit.taken_back),
              audit.is_torn ? "; the last line is incomplete because of a crash" : "");
  print_mixture(audit);
  if (audit.read_again > 0)
    std::printf("read the data again: the bytes of %lld steps match the data\n",
                number(audit.read_again));
  if (audit.flaw.empty())
    std::puts("each sample of each epoch is in exactly one committed step");
  else
    std::printf("FAIL: %s\n", audit.flaw.c_str());
}

ExitCode audit(const AuditArguments& arguments, const CommonFlags& flags) {
  const auto files = storage::disk_files();
  const auto found_folder = folder_of_run(*files, arguments.run);
  if (!found_folder) return invalid(found_folder.error());
  const std::string& folder = *found_folder;
  const auto ledger = storage::read_segments(*files, folder + "/ledger");
  if (!ledger)
    return complain(ExitCode::invalid, "error: " + ledger.error().text +
                                           "; each run keeps its ledger in runs/NAME/ledger");
  std::shared_ptr<const storage::Dataset> data;
  if (arguments.reads_data) {
    auto opened = data_of_run(*files, folder);
    if (!opened) return invalid(opened.error());
    data = std::move(*opened);
  }
  storage::Audit found = storage::audit(*ledger, data.get());
  if (found.flaw.empty()) found.flaw = flaw_of_newest(*files, folder, found);
  if (flags.output == "json")
    std::puts(to_json(to_value(folder, found)).c_str());
  else
    print(folder, found);
  return found.flaw.empty() ? ExitCode::done : ExitCode::failed;
}

}  // namespace

void add_audit(Program& program) {
  auto [command, arguments] = add_command(
      program, program.app, "audit", "prove that each sample was trained on once an epoch", audit);
  command->add_option("run", arguments.run, "a run's name or folder")->required();
  command->add_flag(
      "--data", arguments.reads_data,
      "read the run's data again and compare its bytes with those that each step read");
}

}  // namespace troupe::apps
