#include "tests/sim/monitor.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "actors/messages.h"
#include "actors/nodes/run_orders.h"
#include "core/json.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/checkpoint/ledger.h"
#include "storage/files/records.h"
#include "transport/wire/fields.h"

namespace troupe::simulation {
namespace {

/// Longer than a new head needs to read the decisions of one that has ended amid them, and shorter
/// than any patience of an attempt.
constexpr auto most_thought = std::chrono::seconds(8);

bool is_about_message(const std::string& complaint) {
  return complaint.find("found ") != complaint.npos;
}

}  // namespace

Monitor::Monitor(SimulatedCluster& cluster, SimulatedMachine& head, std::string run,
                 const TrainedSteps& expected)
    : cluster_(cluster), head_(head), run_(std::move(run)), expected_(expected) {}

void Monitor::violate(int rule, const std::string& what) {
  violations_.push_back("rule " + std::to_string(rule) + ": " + what);
  cluster_.scheduler().note("VIOLATION " + std::to_string(rule), what);
}

void Monitor::look() {
  look_at_decisions();
  const auto file = head_.disk.files().open("runs/" + run_ + "/events.jsonl");
  if (!file) return;
  const auto size = (*file)->size();
  if (size < read_) read_ = size;  // A crash took the end.
  if (size == read_) return;
  std::string text(size - read_, '\0');
  if (!(*file)->read(read_, std::as_writable_bytes(std::span(text)))) return;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    if (const auto event = parse_json(line)) {
      if (cluster_.scheduler().has_history() && text_in(*event, "type") != "step")
        cluster_.scheduler().note("event", line);
      learn(*event);
    }
  }
  read_ += begin;
}

void Monitor::learn(const Value& event) {
  const auto type = text_in(event, "type");
  if (type == "step") check_step(integer_in(event, "step"), number_in(event, "loss"));
  if (type == "eval") check_evaluation(integer_in(event, "step"), number_in(event, "loss"));
  if (type == "warn") check_patience(text_in(event, "text"));
  if (type == "run.state") state_ = text_in(event, "state");
  if (type == "run.recovered") ++recoveries_;
  if (type == "checkpoint.saved") check_save(integer_in(event, "step"), text_in(event, "weights"));
}

/// Rule 7: a step has the loss that it would have without faults.
void Monitor::check_step(std::int64_t step, double loss) {
  last_step_ = step;
  if (step > furthest_) planned_by_newest_step_ = planned_before_;
  furthest_ = std::max(furthest_, step);
  const auto expected = expected_.find(step);
  if (expected == expected_.end())
    violate(7, "step " + std::to_string(step) + " is done, which the run does not have");
  else if (expected->second.loss != loss)
    violate(7, "step " + std::to_string(step) + " is done with the loss " + std::to_string(loss) +
                   ", but without faults it has " + std::to_string(expected->second.loss));
}

/// Rule 7: an evaluation has the loss that it would have without faults.
void Monitor::check_evaluation(std::int64_t step, double loss) {
  const auto expected = expected_.find(step);
  if (expected == expected_.end() || expected->second.evaluated != loss)
    violate(7, "step " + std::to_string(step) + " is evaluated with the loss " +
                   std::to_string(loss) + ", which it does not have without faults");
}

/// Rule 9: a head that waits because attempts came to nothing has had so many without a new step.
/// One more may have ended as its last step was done, and one more before that step was told.
void Monitor::check_patience(const std::string& warning) {
  const auto end = warning.find(" attempts came to nothing");
  if (end == warning.npos) return;
  const auto begin = warning.find_last_of(' ', end - 1) + 1;
  const auto told = std::stoll(warning.substr(begin, end - begin));
  const auto since = planned_ - planned_by_newest_step_;
  if (told > since + (steps_may_be_late_ ? 2 : 1))
    violate(9, "the run waits because " + std::to_string(told) +
                   " attempts came to nothing, but since its newest step it has had " +
                   std::to_string(since));
}

void Monitor::look_at_decisions() {
  const auto path = "runs/" + run_ + "/decisions";
  const auto file = head_.disk.files().inspect(path);
  const auto now = cluster_.scheduler().now();
  if (file && file->bytes != bytes_of_decisions_)
    if (const auto bytes = head_.disk.files().read(path)) {
      bytes_of_decisions_ = file->bytes;
      check_decisions(read_decisions(std::string(bytes->text())).records);
    }
  if (!has_head_) must_give_up_since_.reset();
  if (must_give_up_since_ && now - *must_give_up_since_ > most_thought) {
    must_give_up_since_.reset();
    violate(8, "an attempt that had not begun has lost a node, and is not given up");
  }
}

const actors::decide::Journal& Monitor::read_decisions(std::string text) {
  return last_decisions_.of(std::move(text), actors::decide::read_journal);
}

std::int64_t Monitor::steps_in(std::string ledger) {
  return last_ledger_.of(std::move(ledger),
                         [](std::string_view text) { return storage::audit(text).steps; });
}

/// Rule 8: an attempt that loses a node before it has begun is given up at once. Rule 3: nobody is
/// blamed for a message that no node sends.
void Monitor::check_decisions(const std::vector<actors::decide::Record>& records) {
  using Kind = actors::decide::Record::Kind;
  decisions_seen_ = std::min(decisions_seen_, records.size());  // A crash took the end.
  planned_before_ = std::exchange(planned_, 0);
  std::vector<actors::decide::Life> waits_for;
  bool must_give_up = false;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto& record = records[i];
    if (must_give_up && record.kind != Kind::aborted && record.kind != Kind::term &&
        i >= decisions_seen_)
      violate(8, "attempt " + std::to_string(record.attempt) +
                     " had not begun and lost a node, but was not given up: " + record.why);
    must_give_up = record.kind == Kind::dead && !waits_for.empty() &&
                   std::ranges::count(waits_for, record.lives.at(0)) > 0;
    if (record.kind != Kind::dead && record.kind != Kind::strike) waits_for.clear();
    if (record.kind == Kind::planned) {
      waits_for = record.lives;
      ++planned_;
    }
    if (record.kind == Kind::strike && i >= decisions_seen_ && is_about_message(record.why))
      violate(3, "a node has a strike: " + record.why);
  }
  decisions_seen_ = records.size();
  must_give_up_since_.reset();
  if (must_give_up) must_give_up_since_ = cluster_.scheduler().now();
}

/// Rule 5: as a checkpoint becomes complete, its steps are safe in the ledger.
void Monitor::see_call(const SimulatedDisk::Call& call) {
  const auto place = call.path.find("/step-");
  if (std::string_view(call.what) != "rename" || place == call.path.npos ||
      !call.path.ends_with(".new") || call.path.find("runs/" + run_ + "/") == call.path.npos)
    return;
  const auto step = std::stoll(call.path.substr(place + std::string_view("/step-").size()));
  const auto safe = steps_in(head_.disk.files().durable_part(ledger_path()));
  if (safe < step)
    violate(5, "the checkpoint of step " + std::to_string(step) +
                   " becomes complete, but only the steps up to " + std::to_string(safe) +
                   " are safe in the ledger");
}

/// Rules 2, 5 and 7: a step has the weights that it would have without faults, and a checkpoint
/// that was told of is there.
void Monitor::check_save(std::int64_t step, const std::string& weights) {
  if (step == 0) return;  // It was stopped before it had begun.
  const auto expected = expected_.find(step);
  if (expected == expected_.end())
    violate(7, "step " + std::to_string(step) + " is saved, which the run does not have");
  else if (expected->second.weights != weights)
    violate(7, "step " + std::to_string(step) + " is saved with the weights " + weights +
                   ", but without faults it has " + expected->second.weights);
  told_saved_ = step;
  check_saves("it was told of");
}

void Monitor::check_saves(const std::string& when) {
  if (is_damaged_) return;
  const auto listed = storage::list_checkpoints(head_.disk.files(), root());
  if (!listed) return violate(5, "the checkpoints cannot be read: " + listed.error().text);
  std::string found;
  for (const auto& checkpoint : *listed) {
    if (checkpoint.step >= told_saved_ &&
        checkpoint.state == storage::ListedCheckpoint::State::complete)
      return;
    found += " " + std::to_string(checkpoint.step) + ": " + checkpoint.problem;
  }
  violate(5, "step " + std::to_string(told_saved_) + " was saved, but when " + when +
                 " there was no complete checkpoint of it or a later step; found" + found);
}

void Monitor::head_began(const HeadLife& head) {
  if (head.term <= term_)
    violate(1, "a head began with term " + std::to_string(head.term) + ", after term " +
                   std::to_string(term_));
  term_ = head.term;
  has_head_ = true;
}

void Monitor::head_crashed() {
  if (told_saved_ > 0) check_saves("its machine had crashed");
}

void Monitor::see_packet(const Wires::Party& from, const Wires::Party& to, const Parts& parts) {
  if (parts.size() < 3 || !parts[0].starts_with("TRPE")) return;
  const auto has = [&](std::string_view type) { return parts[1].find(type) != std::string::npos; };
  if (!has(actors::Prepare::type) && !has(actors::Start::type) && !has(actors::KeepStep::type))
    return;
  const std::vector<std::string_view> views(parts.begin(), parts.end());
  const auto message = transport::decode(views);
  if (!message || message->run != run_) return;
  if (message->type == actors::Prepare::type) check_prepare(from, to, *message);
  if (message->type == actors::Prepared::type)
    if (const auto prepared = transport::from_message<actors::Prepared>(*message))
      for (const auto& [step, optimizers] : prepared->kept)
        attempts_[message->epoch].kept[step].insert(optimizers.begin(), optimizers.end());
  if (message->type == actors::Start::type) check_start(*message);
  if (message->type == actors::KeepStep::type) check_keep_step(*message);
}

/// Rule 1: heads tell each node to prepare ever newer attempts of a run. No crash can make a head
/// forget an attempt that a node was told of.
void Monitor::check_prepare(const Wires::Party& from, const Wires::Party& to,
                            const transport::Message& message) {
  if (const auto order = transport::from_message<actors::Prepare>(message))
    attempts_[message.epoch].optimizers = static_cast<int>(order->placement.optimizers.size());
  auto& told = told_[to.process];
  if (from.process == told.head && message.seq <= told.seq) return;  // It is sent again.
  if (message.epoch <= told.attempt)
    violate(1, "attempt " + std::to_string(message.epoch) + " is prepared, after attempt " +
                   std::to_string(told.attempt));
  told = {message.seq, message.epoch, from.process};
  const auto path = "runs/" + run_ + "/decisions";
  const auto& safe = read_decisions(head_.disk.files().durable_part(path));
  std::uint64_t newest = 0;
  for (const auto& record : safe.records) newest = std::max(newest, record.attempt);
  if (newest < message.epoch)
    violate(1, "attempt " + std::to_string(message.epoch) +
                   " is prepared, but the newest that would survive a crash is " +
                   std::to_string(newest));
}

/// Rule 4: nodes forget what is older than a step only if that step is in the ledger.
void Monitor::check_keep_step(const transport::Message& message) {
  const auto order = transport::from_message<actors::KeepStep>(message);
  if (!order) return violate(4, "an order to keep a step cannot be read: " + order.error().text);
  const auto written = head_.disk.files().read(ledger_path());
  const auto steps = written ? steps_in(std::string(written->text())) : 0;
  if (steps < order->line)
    violate(4, "nodes may forget what is older than step " + std::to_string(order->line) +
                   ", but the ledger has only " + std::to_string(steps) + " steps");
}

/// Rule 4: an attempt begins at the best state that is left.
void Monitor::check_start(const transport::Message& message) {
  auto& attempt = attempts_[message.epoch];
  if (std::exchange(attempt.has_begun, true)) return;
  const auto order = transport::from_message<actors::Start>(message);
  if (!order) return violate(4, "an order to start cannot be read: " + order.error().text);
  const std::string begins = "attempt " + std::to_string(message.epoch) + " begins after step " +
                             std::to_string(order->step) + ", but step ";
  const auto ledger = storage::read_segments(head_.disk.files(), ledger_path());
  const auto committed = ledger ? steps_in(*ledger) : 0;
  for (const auto& [step, optimizers] : attempt.kept)
    if (step > order->step && step <= committed && std::ssize(optimizers) == attempt.optimizers)
      violate(4, begins + std::to_string(step) + " is in the memory of its nodes");
  if (told_saved_ > order->step && !is_damaged_ && !reads_may_fail_)
    violate(4, begins + std::to_string(told_saved_) + " is saved");
}

/// Rule 8: a node that is not heard is lost.
void Monitor::is_without_power(const std::string& node, const Value& nodes) {
  const auto* listed = nodes.find("nodes");
  if (!listed || !listed->list()) return;
  for (const auto& one : *listed->list())
    if (text_in(one, "name") == node)
      violate(8, node + " has no power, but the head counts on it: " + to_json(one));
}

bool Monitor::lacks_good_checkpoint() const {
  return is_damaged_ && !storage::open_newest_checkpoint(head_.disk.files(), root());
}

void Monitor::ended(const Value& standing, std::int64_t steps) {
  const auto state = text_in(standing, "state");
  const auto why = text_in(standing, "why");
  if (lacks_good_checkpoint()) return;
  const auto newest = storage::open_newest_checkpoint(head_.disk.files(), root());
  if (state != "done") return violate(8, "the run is " + state + ": " + why);
  look();
  if (!newest || !*newest)
    return violate(7, "the run is done, but has no good checkpoint" +
                          (newest ? "" : ": " + newest.error().text));
  const auto& manifest = (*newest)->checkpoint.manifest();
  if (manifest.step != steps && !(*newest)->skipped.empty() && is_damaged_)
    return;  // The damage came after the end.
  if (manifest.step != steps)
    violate(7, "the run is done after " + std::to_string(steps) + " steps, but step " +
                   std::to_string(manifest.step) + " is the last that is saved");
  else if (to_string(manifest.weights_digest) != expected_.at(steps).weights)
    violate(7, "the weights in the end are " + to_string(manifest.weights_digest) +
                   ", but without faults they are " + expected_.at(steps).weights);
  const auto ledger = storage::read_segments(head_.disk.files(), ledger_path());
  if (!ledger) return violate(7, "the ledger cannot be read: " + ledger.error().text);
  const auto audit = storage::audit(*ledger);
  if (!audit.flaw.empty()) violate(7, "audit: " + audit.flaw);
  if (audit.steps != steps)
    violate(7,
            "the ledger has " + std::to_string(audit.steps) + " steps of " + std::to_string(steps));
}

}  // namespace troupe::simulation
