#include "apps/report/run_events.h"

#include <algorithm>

#include "core/json.h"
#include "core/text.h"

namespace troupe::apps {
namespace {

constexpr JsonLimits limits = {.bytes = std::size_t{1} << 20, .depth = 16};

std::optional<double> number_of(const Value& event, std::string_view key) {
  const Value* value = event.find(key);
  if (!value || !value->is_number()) return {};
  return value->number();
}

std::optional<std::int64_t> step_of(const Value& event) {
  const Value* step = event.find("step");
  if (!step || !step->integer() || *step->integer() < 0) return {};
  return *step->integer();
}

/// Appends an event. Steps that a run repeats after going back to a checkpoint replace the earlier
/// ones.
template <class Told>
void append(std::vector<Told>& told, Told next) {
  while (!told.empty() && told.back().step >= next.step) told.pop_back();
  told.push_back(std::move(next));
}

std::optional<std::int64_t> whole_number_of(const Value& event, std::string_view key) {
  const Value* value = event.find(key);
  return value && value->integer() ? std::optional(*value->integer()) : std::nullopt;
}

/// Adds a straggler, or ends one that was named before.
void take_straggler(const Value& event, RunEvents& run) {
  StragglerTold told{.node = text_of(event, "node"),
                     .device = whole_number_of(event, "device").value_or(0),
                     .cause = text_of(event, "cause"),
                     .factor = number_of(event, "factor"),
                     .share = number_of(event, "share"),
                     .since = whole_number_of(event, "since"),
                     .until = {}};
  if (!event.find("over")) return run.stragglers.push_back(std::move(told));
  for (auto known = run.stragglers.rbegin(); known != run.stragglers.rend(); ++known)
    if (known->node == told.node && known->device == told.device && known->cause == told.cause) {
      if (!known->until) known->until = whole_number_of(event, "step");
      return;
    }
}

Status take(const Value& event, RunEvents& run) {
  const std::string type = text_of(event, "type");
  if (type.empty()) return Error{"it has no type"};
  if (run.name.empty()) run.name = text_of(event, "run");
  if (type == "run.state") {
    run.state = text_of(event, "state");
    run.why = text_of(event, "why");
    if (run.state == "running") ++run.starts;
  } else if (type == "step") {
    const auto step = step_of(event);
    if (!step) return Error{"a step without its number"};
    append(run.steps, {.step = *step,
                       .loss = number_of(event, "loss"),
                       .grad_norm = number_of(event, "grad_norm"),
                       .lr = number_of(event, "lr"),
                       .rate = number_of(event, "rate"),
                       .bubble = number_of(event, "bubble"),
                       .memory = number_of(event, "memory")});
  } else if (type == "eval") {
    const auto step = step_of(event);
    const auto loss = number_of(event, "loss");
    if (!step || !loss) return Error{"an evaluation without step or loss"};
    append(run.evals, {*step, *loss});
  } else if (type == "checkpoint.saved") {
    run.checkpoints.push_back(text_of(event, "directory"));
  } else if (type == "warn") {
    run.warnings.push_back(text_of(event, "text"));
  } else if (type == "node.straggler") {
    take_straggler(event, run);
  }
  return Done{};  // Ignores events of other types, which later versions may add.
}

}  // namespace

RunEvents parse_events(std::string_view text) {
  RunEvents run;
  for (int line = 1; !text.empty(); ++line) {
    const auto end = text.find('\n');
    const bool is_whole = end != text.npos;
    const auto event = parse_json(text.substr(0, end), limits);
    text = is_whole ? text.substr(end + 1) : std::string_view();
    const Status taken = event ? take(*event, run) : event.error();
    if (const auto time = event ? number_of(*event, "time") : std::nullopt) {
      if (!run.began) run.began = time;
      run.ended = time;
    }
    if (taken) continue;
    if (!is_whole) {
      run.is_torn = true;
    } else if (run.unreadable++ == 0) {
      run.first_flaw = "line " + std::to_string(line) + ": " + taken.error().text;
    }
  }
  return run;
}

Result<std::string> folder_of_run(storage::Files& files, const std::string& run) {
  for (const auto& folder : {"runs/" + run, run}) {
    const auto there = files.exists(folder);
    if (!there.ok()) return there.error();
    if (*there) return folder;
  }
  const auto runs = files.list("runs");
  std::vector<std::string_view> names;
  if (runs)
    for (const auto& entry : *runs) names.push_back(entry.name);
  const auto meant = nearest(run, names);
  return Error{run + ": there is no such run in runs/, and no such folder" +
               (meant.empty() ? "" : "; is " + std::string(meant) + " meant?") +
               "; `troupe runs --local` lists runs"};
}

}  // namespace troupe::apps
