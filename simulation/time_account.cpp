#include "simulation/time_account.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/units.h"

namespace troupe::simulation {
namespace {

using actors::StateSource;
namespace decide = actors::decide;
using decide::Phase;
using decide::Row;

bool has(const decide::Answer& answer, Row row) { return std::ranges::count(answer.rows, row) > 0; }

bool is_loss(const decide::Answer& answer) {
  return std::ranges::any_of(answer.records, [](const decide::Record& record) {
    return record.kind == decide::Record::Kind::dead;
  });
}

}  // namespace

void TimeAccount::come(const std::string& host, std::size_t alive) {
  count_nodes(alive);
  ++report_.arrivals;
  tell("node.joined").set("node", host);
}

void TimeAccount::go(const std::string& host, std::size_t alive) {
  count_nodes(alive);
  ++report_.losses;
  tell("node.lost").set("node", host);
  gone_[host] = clock_.now();
}

void TimeAccount::step(std::int64_t step, double seconds) {
  if (step <= report_.steps) {
    ++report_.steps_again;
    report_.again += seconds;
    if (open_) ++open_->steps_again;
    return;
  }
  report_.steps = step;
  report_.useful += seconds;
  if (open_ && phase_ == Phase::run) {
    open_->again += part();
    close();
  }
}

void TimeAccount::answered(const decide::Answer& answer, double rate) {
  const auto& state = answer.state;
  if (state.phase != phase_) count_phase();
  if (has(answer, Row::run_loss) || has(answer, Row::loss_under_way)) lost(answer);
  if (has(answer, Row::recover_merges) && open_ && is_loss(answer)) ++open_->lost;
  for (const auto& order : answer.orders)
    if (const auto* load = std::get_if<decide::Load>(&order)) source_ = load->source.from;
  if (open_) {
    if (has(answer, Row::recover_plans)) open_->freeze += part();
    if (has(answer, Row::plan_ready)) open_->plan += part();
    if (has(answer, Row::prepared_all)) open_->prepare += part();
    if (has(answer, Row::loaded)) {
      open_->load += part();
      open_->from_memory = source_ == StateSource::From::memory;
    }
    if (state.phase == Phase::suspend) close();
  }
  if (has(answer, Row::loaded)) {
    const auto nodes = static_cast<int>(state.plan.members.size());
    report_.plans.push_back({since_begin(), nodes, rate, state.plan.text});
    auto& changed = tell("plan.changed");
    changed.set("why", state.plan.text);
    changed.set("nodes", nodes);
    changed.set("rate", rate);
    changed.set("step", state.line);
  }
  phase_ = state.phase;
}

ForecastReport TimeAccount::close(std::size_t alive, std::string end) {
  count_phase();
  count_nodes(alive);
  report_.length = since_begin();
  report_.end = std::move(end);
  const double all = in_seconds(report_.length);
  report_.mean_nodes /= std::max(all, 1e-9);
  report_.rest = all - report_.useful - report_.again - report_.starting - report_.waiting -
                 report_.recovering;
  return std::move(report_);
}

void TimeAccount::count_nodes(std::size_t alive) {
  report_.mean_nodes += in_seconds(clock_.now() - nodes_since_) * static_cast<double>(alive);
  nodes_since_ = clock_.now();
}

void TimeAccount::count_phase() {
  const double time = in_seconds(clock_.now() - phase_since_);
  phase_since_ = clock_.now();
  switch (phase_) {
    case Phase::boot:
    case Phase::gather:
      report_.starting += time;
      break;
    case Phase::plan:
    case Phase::prepare:
    case Phase::load:
    case Phase::recover:
      (report_.plans.empty() ? report_.starting : report_.recovering) += time;
      break;
    case Phase::suspend:
      report_.waiting += time;
      break;
    case Phase::run:
    case Phase::ended:
      break;
  }
}

/// Returns the time since the last part of the recovery. Its parts end one after another.
Duration TimeAccount::part() { return clock_.now() - std::exchange(mark_, clock_.now()); }

void TimeAccount::lost(const decide::Answer& answer) {
  if (open_) {
    ++open_->lost;
    // The repeated steps must be repeated once more.
    if (phase_ == Phase::run) open_->again += part();
    return;
  }
  open_ = Recovery{since_begin(), 1, false, answer.reason, {}, {}, {}, {}, {}, {}, 0};
  for (const auto& record : answer.records) {
    if (record.kind != decide::Record::Kind::dead) continue;
    const auto gone = gone_.find(record.names.front());
    if (gone != gone_.end()) open_->detect = clock_.now() - gone->second;
  }
  open_->at -= open_->detect;
  mark_ = clock_.now();
}

void TimeAccount::close() {
  auto& told = tell("recovered");
  told.set("why", open_->why);
  told.set("seconds", in_seconds(open_->total()));
  told.set("steps_again", open_->steps_again);
  report_.recoveries.push_back(*std::exchange(open_, std::nullopt));
}

Value& TimeAccount::tell(const std::string& type) {
  Value event;
  event.set("time", in_seconds(since_begin()));
  event.set("type", type);
  report_.timeline.push_back(std::move(event));
  return report_.timeline.back();
}

}  // namespace troupe::simulation
