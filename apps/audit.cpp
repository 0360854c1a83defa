#include <cstdio>

#include "apps/command.h"
#include "apps/run_events.h"
#include "core/json.h"
#include "storage/checkpoint.h"
#include "storage/files.h"
#include "storage/ledger.h"

namespace troupe::apps {
namespace {

struct AuditArguments {
  std::string run;
};

/// What a checkpoint holds was committed before it was saved: the newest that is complete.
std::string flaw_of_newest(storage::Files& files, const std::string& folder,
                           const storage::Audit& audit) {
  std::string root = folder + "/checkpoints";
  if (const auto bytes = files.read(folder + "/events.jsonl"))
    if (const auto run = parse_events(bytes->text()); !run.checkpoints.empty())
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

Value to_value(const std::string& folder, const storage::Audit& audit) {
  Value value;
  value.set("run", folder);
  value.set("steps", audit.steps);
  value.set("samples", audit.samples);
  value.set("passes", audit.passes);
  value.set("attempts", audit.attempts);
  value.set("skipped", audit.skipped);
  value.set("taken_back", audit.taken_back);
  value.set("torn", audit.is_torn);
  value.set("good", audit.flaw.empty());
  if (!audit.flaw.empty()) value.set("flaw", audit.flaw);
  return value;
}

void print(const std::string& folder, const storage::Audit& audit) {
  const auto number = [](std::int64_t n) { return static_cast<long long>(n); };
  std::printf("%s: %lld steps of %lld samples are committed: %lld whole passes\n", folder.c_str(),
              number(audit.steps), number(audit.samples), number(audit.passes));
  if (audit.skipped > 0)
    std::printf("of these %lld changed no weights: their gradients overflowed in fp16\n",
                number(audit.skipped));
  std::printf("attempts: %lld; steps that they took back and did again: %lld%s\n",
              number(audit.attempts), number(audit.taken_back),
              audit.is_torn ? "; the last line is torn, as a crash leaves it" : "");
  if (audit.flaw.empty())
    std::puts("each sample of each pass is in exactly one committed step");
  else
    std::printf("FAIL: %s\n", audit.flaw.c_str());
}

ExitCode audit(const AuditArguments& arguments, const CommonFlags& flags) {
  const auto files = storage::disk_files();
  const std::string folder = folder_of_run(*files, arguments.run);
  const auto bytes = files->read(folder + "/ledger");
  if (!bytes)
    return complain(ExitCode::invalid, "error: " + bytes.error().text +
                                           "; every run keeps it in its folder, runs/NAME/ledger");
  storage::Audit found = storage::audit(bytes->text());
  if (found.flaw.empty()) found.flaw = flaw_of_newest(*files, folder, found);
  if (flags.output == "json")
    std::puts(to_json(to_value(folder, found)).c_str());
  else
    print(folder, found);
  return found.flaw.empty() ? ExitCode::done : ExitCode::failed;
}

}  // namespace

void add_audit(Program& program) {
  auto [command, arguments] =
      add_command(program, program.app, "audit",
                  "prove that each sample of each pass was in exactly one committed step", audit);
  command->add_option("run", arguments.run, "the name of a run, or its folder")->required();
}

}  // namespace troupe::apps
