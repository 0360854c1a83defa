#include "apps/head/head_runs.h"

#include <cstddef>
#include <string_view>
#include <utility>

#include "apps/head/head_orders.h"
#include "apps/head/misconfigured.h"
#include "apps/run/run_record.h"
#include "apps/run/run_setup.h"
#include "config/schema/dotted.h"
#include "core/printable.h"

namespace troupe::apps {
namespace {

constexpr std::size_t most_runs = 1000;
constexpr std::size_t most_submits = 64;  // The bound of waiting submits.

/// Removes a field from a message that contains a configuration. Returns the field.
Value take_field(Value& config, std::string_view name) {
  Value field;
  if (auto* map = config.map())
    std::erase_if(*map, [&](const Value::Entry& entry) {
      if (entry.key != name) return false;
      field = entry.value;
      return true;
    });
  return field;
}
bool take_flag(Value& config, std::string_view name) {
  const Value field = take_field(config, name);
  return field.boolean() && *field.boolean();
}
std::int64_t take_integer(Value& config, std::string_view name) {
  const Value field = take_field(config, name);
  return field.integer() ? *field.integer() : 0;
}
std::string take_text(Value& config, std::string_view name) {
  const Value field = take_field(config, name);
  return field.text() ? *field.text() : std::string();
}

}  // namespace

HeadRuns::HeadRuns(const HeadRunsContext& context)
    : context_(context),
      submits_(context.program.env.make_loop({.name = "submits", .most_waiting = most_submits})),
      clearing_(context.program.env.make_loop({"ended runs"})) {}

void HeadRuns::end_loops() {
  is_closing_ = true;
  clearing_->end();
  submits_->end();
}

std::shared_ptr<HeadRun> HeadRuns::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(name);
  return found == runs_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<HeadRun>> HeadRuns::all() const {
  std::vector<std::shared_ptr<HeadRun>> runs;
  const std::lock_guard lock(mutex_);
  for (const auto& [_, run] : runs_) runs.push_back(run);
  return runs;
}

std::optional<RunStanding> HeadRuns::ended(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto known = ended_.find(name);
  if (known == ended_.end()) return {};
  return known->second;
}

Refusal HeadRuns::no_run(const std::string& name) const {
  const auto known = ended(name);
  if (!known) return unknown_run(name);
  return transport::refusal(RefusalCode::conflict, "run",
                            "the run '" + name + "' is not active: it is " + known->state);
}

Value::List HeadRuns::reports() const {
  Value::List runs;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, standing] : ended_) runs.push_back(transport::to_value(standing));
  for (const auto& [_, run] : runs_) runs.push_back(transport::to_value(run->report()));
  return runs;
}

std::map<std::string, RunNumbers> HeadRuns::numbers() const {
  std::map<std::string, RunNumbers> numbers;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, run] : runs_) numbers.emplace(name, run->numbers());
  return numbers;
}

// How runs begin.

void HeadRuns::submit(const transport::Message& message, const Answer& answer) {
  const auto taken = submits_->post([this, message, answer] { (*answer)(submitted(message)); });
  if (taken == Loop::Posted::full)
    (*answer)(transport::refusal(
        RefusalCode::busy, "",
        "the head has " + std::to_string(most_submits) + " submitted runs to look at already",
        "submit it again a little later"));
}

/// Called on the loop of submits. A sender who lost the answer may send the same message again.
Reply HeadRuns::submitted(const transport::Message& message) {
  if (const auto known = submitted_.find(message.id); known != submitted_.end()) {
    Value answer = Value::Map{};
    answer.set("run", known->second);
    return answer;
  }
  Value config = message.body;
  const bool resumes = take_flag(config, "resume");
  const bool from_scratch = take_flag(config, "from_scratch");
  const Beginning begins{!resumes       ? RunStart::anew
                         : from_scratch ? RunStart::resume_or_scratch
                                        : RunStart::resume,
                         take_integer(config, "extend")};
  if (begins.more_steps < 0 || (begins.more_steps > 0 && !resumes))
    return transport::refusal(RefusalCode::invalid, "extend",
                              "found extend = " + std::to_string(begins.more_steps) +
                                  (resumes ? ", wanted at least 1" : " without resume"),
                              "extend a run that is resumed by 1 step or more");
  const Submitter from{take_text(config, "host"), take_text(config, "folder")};
  // Names relative to the head's own folder stay as they are: checkpoints have them, too.
  if (from.folder != context_.program.host.folder)
    resolve_inputs(context_.program.files, from, config);
  auto submitted = submit(config, begins, message.id, from);
  if (!submitted) return submitted;
  if (submitted_.size() > most_runs) submitted_.erase(submitted_.begin());
  submitted_.emplace(message.id, text_in(*submitted, "run"));
  return submitted;
}

Reply HeadRuns::submit(Value body, const Beginning& begins, std::uint64_t submission,
                       const Submitter& from) {
  config::Diagnostics found;
  auto loaded = config::load_message(body, "run.submit", found);
  if (!loaded) return misconfigured(loaded.error(), found);
  if (begins.more_steps > 0) {
    loaded = extended(*loaded, begins.more_steps, body);
    if (!loaded) return misconfigured(loaded.error());
  }
  if (auto inside = context_.options.confinement.check(*loaded); !inside)
    return misconfigured(inside.error());
  const std::string name = loaded->config.name;
  {
    const std::lock_guard lock(mutex_);
    const auto known = runs_.find(name);
    if (known != runs_.end() && !known->second->report().has_ended())
      return transport::refusal(RefusalCode::conflict, "name", "a run '" + name + "' is active",
                                "stop it, or give this run another name");
    if (runs_.size() >= most_runs && known == runs_.end())
      return transport::refusal(
          RefusalCode::busy, "",
          std::to_string(most_runs) + " runs are active, the most that a head can lead",
          "wait until one has ended, or stop one");
  }
  auto run = make(std::move(*loaded), begins.start);
  if (!run) return misconfigured(with_place(run.error(), context_.program.host, from));
  // Records the run once it is known to be valid, and starts it once it is recorded.
  if (auto noted = context_.journal.submitted(name, submission, body); !noted) return noted.error();
  Value answer = Value::Map{};
  answer.set("run", name);
  if (const auto choice = (*run)->choice()) answer.set("chosen", transport::to_value(*choice));
  const auto steps = std::to_string((*run)->report().steps);
  const std::string moved = (*run)->moved();
  if (!moved.empty()) answer.set("moved", moved);
  start(name, std::move(*run));
  context_.options.say("run " + name + " was submitted: " + steps + " steps" +
                       (moved.empty() ? "" : "; the earlier run of this name is now " + moved));
  return answer;
}

/// Adds the keys with which a run trains `more` steps longer than the configuration in its folder.
Result<config::Loaded> HeadRuns::extended(const config::Loaded& loaded, std::int64_t more,
                                          Value& body) {
  const auto keys = keys_to_extend(context_.program.files, "runs/" + loaded.config.name, more);
  if (!keys) return keys.error();
  for (const auto& key : *keys) config::set_at(body, key.name, key.value);
  return config::load_message(body, "run.submit");
}

Result<std::shared_ptr<HeadRun>> HeadRuns::make(config::Loaded loaded, RunStart begins,
                                                std::optional<RunChoice> kept) {
  auto setup = set_up(context_.program.files, loaded.config);
  if (!setup) return setup.error();
  if (auto good = check_samples(loaded.config, *setup); !good) return good.error();
  const std::string name = loaded.config.name;
  const auto& options = context_.options;
  auto run = std::make_shared<HeadRun>(
      std::move(loaded), std::move(*setup), begins,
      HeadRun::Context{context_.program, context_.gate.nodes(), options.interface, options.keys,
                       options.plain, context_.publisher, options.notify,
                       [this](const RunStanding& run) { note_end(run); },
                       [this, name] { clearing_->post([this, name] { clear_away(name); }); },
                       [this, name](const RunChoice& choice) {
                         return context_.journal.chosen(name, transport::to_value(choice));
                       }});
  if (auto prepared = run->prepare(std::move(kept)); !prepared) return prepared.error();
  return run;
}

void HeadRuns::start(const std::string& name, std::shared_ptr<HeadRun> run) {
  // Keeps an ended run of this name alive until the lock is released, since its threads may want
  // the lock.
  std::shared_ptr<HeadRun> before;
  const std::lock_guard lock(mutex_);
  run->start();
  context_.gate.set_patience(name, run->patience());
  before = std::exchange(runs_[name], std::move(run));
  ended_.erase(name);
}

void HeadRuns::resume_earlier() {
  for (const auto& [name, known] : context_.journal.runs()) {
    submitted_.emplace(known.submission, name);
    resume(name, known);
  }
}

/// Resumes a run of an earlier life, or keeps its report if it has ended.
void HeadRuns::resume(const std::string& name, const RememberedRun& known) {
  RunStanding standing;
  standing.name = name;
  standing.state = known.state;
  standing.why = known.why;
  if (context_.options.earlier_runs == HeadOptions::EarlierRuns::wait && !standing.has_ended()) {
    standing.state = "stopped";
    standing.why = "submit it with --resume to continue it";
  }
  if (standing.has_ended()) {
    standing.step = known.step;
    standing.steps = known.steps;
    standing.loss = known.last.loss;
    standing.goodput = known.last.goodput;
    return keep(std::move(standing));
  }
  auto loaded = config::load_message(known.config, "the journal's run " + name);
  if (!loaded) return context_.options.say(loaded.error().text);
  std::optional<RunChoice> kept;
  if (auto read = transport::from_value<RunChoice>(known.choice, "choice"); read)
    kept = std::move(*read);
  auto run = make(std::move(*loaded), RunStart::resume, std::move(kept));
  if (!run) {
    context_.options.say("run " + name + " cannot continue: " + run.error().text);
    standing.state = "failed";
    standing.why = run.error().text;
    note_end(standing);
    return keep(std::move(standing));
  }
  context_.options.say("run " + name + " continues after step " +
                       std::to_string((*run)->report().step));
  if (known.state == "paused") (*run)->pause(true);
  if (known.state == "stopping") (*run)->drain();
  start(name, std::move(*run));
}

void HeadRuns::keep(RunStanding standing) {
  const std::lock_guard lock(mutex_);
  std::string name = standing.name;
  ended_[std::move(name)] = std::move(standing);
}

// How runs change and end.

void HeadRuns::changed(const std::string& run, const std::string& state, const std::string& why) {
  if (auto noted = context_.journal.changed(run, state, why); !noted)
    not_noted(run, state, noted.error());
}

void HeadRuns::not_noted(const std::string& run, const std::string& state, const Error& why) {
  context_.options.say("a change of run " + run + " to '" + state +
                       "' is not remembered: " + why.text);
}

/// Called by a run.
void HeadRuns::note_end(const RunStanding& run) {
  context_.options.say("run " + run.name + ": " + run.state + " after step " +
                       std::to_string(run.step) + " of " + std::to_string(run.steps) +
                       (run.why.empty() ? "" : ": " + printable(run.why)));
  // A run that stops because the head ends continues in the head's next life.
  if (is_closing_ && run.state == "stopped") return;
  if (auto noted = context_.journal.ended(run.name, run.state, run.why, run.step, run.steps,
                                          {run.loss, run.goodput});
      !noted)
    not_noted(run.name, run.state, noted.error());
}

/// Keeps only the report of a run that is over: its threads, descriptors and data go. Called on
/// the loop of ended runs.
void HeadRuns::clear_away(const std::string& name) {
  const auto run = find(name);
  // Another run of this name may have replaced it.
  if (!run || !run->report().has_ended()) return;
  run->close();
  const std::lock_guard lock(mutex_);
  const auto known = runs_.find(name);
  if (known == runs_.end() || known->second != run) return;
  ended_[name] = run->report();
  runs_.erase(known);
  context_.gate.forget_patience(name);
  std::erase_if(ended_, [this](const auto& each) { return !context_.journal.knows(each.first); });
}

}  // namespace troupe::apps
