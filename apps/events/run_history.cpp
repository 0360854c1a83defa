#include "apps/events/run_history.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/events/event_text.h"
#include "core/json.h"

namespace troupe::apps {
namespace {

// Longer texts are cut: the page shows them on a line.
constexpr std::size_t most_text = 500;

std::optional<double> finite(const Value& event, std::string_view key) {
  const Value* value = event.find(key);
  if (!value || !value->is_number() || !std::isfinite(value->number())) return {};
  return value->number();
}

double number_or_zero(const Value& event, std::string_view key) {
  return finite(event, key).value_or(0);
}

/// Keeps six digits: more would only make an answer longer.
double rounded(double number) {
  if (number == 0) return 0;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::abs(number))));
  return std::isfinite(scale) && scale > 0 ? std::round(number * scale) / scale : number;
}

double to_milliseconds(double seconds) { return std::round(seconds * 1000) / 1000; }

/// Cuts a text, but not within a UTF-8 character.
std::string cut(std::string text) {
  if (text.size() <= most_text) return text;
  auto end = most_text;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + " ...";
}

}  // namespace

void RunHistory::add(const Value& event) {
  const std::string type = text_of(event, "type");
  if (const auto time = finite(event, "time")) {
    if (!begun_) begun_ = time;
    newest_ = time;
  }
  const Value* told = event.find("step");
  const auto step = told && told->integer() ? *told->integer() : -1;
  if (type == "step") {
    if (step > 0) take_step(event, step);
    return;
  }
  if (type == "decision") return;  // There are many, and what comes of them is told.
  if (type == "eval" && step >= 0) take_eval(event, step);
  told_.push_back({.time = number_or_zero(event, "time"),
                   .step = step >= 0 ? step : step_,
                   .type = type,
                   .text = cut(sentence(event))});
  if (told_.size() > most_told) told_.pop_front();
}

std::vector<double> RunHistory::losses() const {
  constexpr std::size_t loss = 0;
  static_assert(measured[loss] == "loss");
  std::vector<double> found;
  for (const auto& row : rows_)
    if (const Mean& mean = row.means[loss]; mean.count > 0)
      found.push_back(mean.sum / static_cast<double>(mean.count));
  return found;
}

/// A run that goes back repeats steps: they replace those from before.
void RunHistory::take_step(const Value& event, std::int64_t step) {
  while (!rows_.empty() && rows_.back().last >= step) rows_.pop_back();
  while (!evals_.empty() && evals_.back().step >= step) evals_.pop_back();
  const bool is_full = rows_.empty() || step - rows_.back().first >= steps_in_row_;
  if (is_full && rows_.size() == most_rows) merge_pairs();
  if (rows_.empty() || step - rows_.back().first >= steps_in_row_) {
    rows_.emplace_back();
    rows_.back().first = step;
  }
  Row& row = rows_.back();
  row.json.clear();
  step_ = row.last = step;
  row.time = number_or_zero(event, "time");
  row.seen = number_or_zero(event, event.find("tokens") ? "tokens" : "samples");
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const auto number = finite(event, measured[i]);
    if (!number) continue;
    row.means[i].sum += *number;
    ++row.means[i].count;
  }
  take_lateness(event, row);
}

void RunHistory::take_lateness(const Value& event, Row& row) {
  const Value* stages = event.find("staleness");
  if (!stages || !stages->list()) return;
  for (const auto& told : *stages->list()) {
    const Value* stage = told.find("stage");
    if (!stage || !stage->integer() || *stage->integer() < 0 || *stage->integer() >= most_stages)
      continue;
    note_stage(static_cast<int>(*stage->integer()));
    Lateness& late = row.late[static_cast<int>(*stage->integer())];
    for (std::size_t i = 0; i < measured_by_stage.size(); ++i) {
      const auto number = finite(told, measured_by_stage[i]);
      if (!number) continue;
      late.means[i].sum += *number;
      ++late.means[i].count;
    }
    const Value* delays = told.find("delays");
    if (!delays || !delays->list()) continue;
    for (std::size_t delay = 0; delay < delays->list()->size(); ++delay) {
      const Value& count = (*delays->list())[delay];
      const auto place = std::min(delay, most_delay);
      if (late.delays.size() <= place) late.delays.resize(place + 1);
      if (count.is_number() && std::isfinite(count.number()))
        late.delays[place] += std::max(0.0, count.number());
    }
  }
}

/// A stage that is new has columns in all rows.
void RunHistory::note_stage(int stage) {
  if (!stages_.insert(stage).second) return;
  for (auto& row : rows_) row.json.clear();
}

void RunHistory::take_eval(const Value& event, std::int64_t step) {
  const Value* loss = event.find("loss");
  if (!loss || !loss->is_number() || !std::isfinite(loss->number())) return;
  while (!evals_.empty() && evals_.back().step >= step) evals_.pop_back();
  evals_.push_back({step, number_or_zero(event, "time"), loss->number()});
  if (evals_.size() > most_evals) evals_.pop_front();
}

/// Adds the steps of the next row.
void RunHistory::merge(Row& row, const Row& next) {
  const auto add_means = [](auto& means, const auto& more) {
    for (std::size_t i = 0; i < means.size(); ++i) {
      means[i].sum += more[i].sum;
      means[i].count += more[i].count;
    }
  };
  row.json.clear();
  row.last = next.last;
  row.time = next.time;
  row.seen = next.seen;
  add_means(row.means, next.means);
  for (const auto& [stage, more] : next.late) {
    Lateness& late = row.late[stage];
    add_means(late.means, more.means);
    late.delays.resize(std::max(late.delays.size(), more.delays.size()));
    for (std::size_t delay = 0; delay < more.delays.size(); ++delay)
      late.delays[delay] += more.delays[delay];
  }
}

void RunHistory::merge_pairs() {
  std::vector<Row> merged;
  for (std::size_t i = 0; i < rows_.size(); i += 2) {
    merged.push_back(std::move(rows_[i]));
    if (i + 1 < rows_.size()) merge(merged.back(), rows_[i + 1]);
  }
  rows_ = std::move(merged);
  steps_in_row_ *= 2;
}

/// Returns null if there is no mean.
Value RunHistory::cell_of(const Mean& mean) {
  if (mean.count == 0) return {};
  return rounded(mean.sum / static_cast<double>(mean.count));
}

std::string RunHistory::json_of(const Row& row) const {
  Value::List cells = {row.last, to_milliseconds(row.time), row.seen};
  for (const auto& mean : row.means) cells.push_back(cell_of(mean));
  for (const int stage : stages_) {
    const auto late = row.late.find(stage);
    for (std::size_t i = 0; i < measured_by_stage.size(); ++i)
      cells.push_back(late == row.late.end() ? Value() : cell_of(late->second.means[i]));
  }
  return troupe::to_json(std::move(cells));
}

std::string RunHistory::to_json(bool is_whole) {
  Value value = Value::Map{};
  Value::List columns = {"step", "time", "seen"};
  for (const auto name : measured) columns.emplace_back(std::string(name));
  for (const int stage : stages_)
    for (const auto name : measured_by_stage)
      columns.emplace_back(std::string(name) + " " + std::to_string(stage));
  value.set("columns", std::move(columns));
  Value::List evals;
  for (const auto& eval : evals_) evals.emplace_back(Value::List{eval.step, eval.time, eval.loss});
  value.set("evals", std::move(evals));
  Value::List told;
  for (const auto& one : told_) {
    Value entry = Value::Map{};
    entry.set("time", one.time);
    entry.set("step", one.step);
    entry.set("type", one.type);
    entry.set("text", one.text);
    told.push_back(std::move(entry));
  }
  value.set("told", std::move(told));
  value.set("delays", delays_by_stage());
  value.set("most_delay", static_cast<std::int64_t>(most_delay));
  if (begun_) value.set("begun", *begun_);
  if (newest_) value.set("newest", *newest_);
  value.set("whole", is_whole);

  std::string text = troupe::to_json(value);
  text.pop_back();  // The brace at the end.
  text += ",\"rows\":[";
  for (auto& row : rows_) {
    if (row.json.empty()) row.json = json_of(row);
    if (text.back() == ']') text += ',';
    text += row.json;
  }
  return text + "]}";
}

/// Returns the sums over all rows.
Value::List RunHistory::delays_by_stage() const {
  std::map<int, std::vector<double>> delays;
  for (const auto& row : rows_)
    for (const auto& [stage, late] : row.late) {
      auto& all = delays[stage];
      all.resize(std::max(all.size(), late.delays.size()));
      for (std::size_t i = 0; i < late.delays.size(); ++i) all[i] += late.delays[i];
    }
  Value::List by_stage;
  for (const auto& [stage, counts] : delays)
    by_stage.emplace_back(Value::List{stage, Value::List(counts.begin(), counts.end())});
  return by_stage;
}

}  // namespace troupe::apps
