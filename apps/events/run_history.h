#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"

namespace troupe::apps {

/// The part of a run's events that a page or a screen draws: its steps in a bounded number of rows,
/// and its newest other events.
class RunHistory {
 public:
  /// More rows are merged in pairs, so that a run of a million steps needs no more memory and time
  /// than one of a thousand.
  static constexpr std::size_t most_rows = 1024;
  static constexpr std::size_t most_evals = 1024;
  static constexpr std::size_t most_told = 200;
  /// Further stages of an asynchronous run are left out.
  static constexpr int most_stages = 16;
  /// Longer delays count as this one.
  static constexpr std::size_t most_delay = 32;

  void add(const Value& event);

  /// Something that happened besides a step.
  struct Told {
    double time = 0;
    std::int64_t step = 0;  // The newest step at that time.
    std::string type, text;
  };
  /// The newest ones, the oldest of them first.
  const std::deque<Told>& told() const { return told_; }
  /// Returns the mean loss of each row that has one.
  std::vector<double> losses() const;
  /// Returns the first step that is known; 0 if there is none.
  std::int64_t first_step() const { return rows_.empty() ? 0 : rows_.front().first; }

  /// Returns a map as JSON, of
  ///   columns: the names of the columns of `rows`; "gap 0" is the gap of stage 0;
  ///   rows:    a list for each row; null where no event of the row had the value;
  ///   evals:   lists of step, time and loss;
  ///   told:    maps of time, step, type and text, the oldest first;
  ///   delays:  for each stage of an asynchronous run its number, and the micro-batches by their
  ///            delay in steps; most_delay is the longest one;
  ///   begun, newest: the times of the first and the last event, if there are events;
  ///   whole:   what is given.
  /// It is asked for often, and few rows change meanwhile: the text of a row is made once.
  std::string to_json(bool is_whole);

 private:
  /// The mean of the values that were added.
  struct Mean {
    double sum = 0;
    std::int64_t count = 0;
  };
  static constexpr std::array<std::string_view, 8> measured = {
      "loss", "grad_norm", "lr", "rate", "bubble", "memory", "goodput", "seconds"};
  static constexpr std::array<std::string_view, 3> measured_by_stage = {"gap", "prediction_error",
                                                                        "penalty_mean"};
  /// How stale the weights of a stage were.
  struct Lateness {
    std::array<Mean, measured_by_stage.size()> means;
    std::vector<double> delays;  // The number of micro-batches for each delay.
  };
  /// Steps in a row, and the time and the samples or tokens at the last of them.
  struct Row {
    std::int64_t first = 0, last = 0;
    double time = 0, seen = 0;
    std::array<Mean, measured.size()> means;
    std::map<int, Lateness> late;  // The lateness by stage; empty for synchronous runs.
    std::string json;              // Empty until it is asked for, and when the row has changed.
  };
  struct Eval {
    std::int64_t step = 0;
    double time = 0, loss = 0;
  };

  static Value cell_of(const Mean& mean);
  std::string json_of(const Row& row) const;
  void take_step(const Value& event, std::int64_t step);
  void take_eval(const Value& event, std::int64_t step);
  void take_lateness(const Value& event, Row& row);
  void note_stage(int stage);
  static void merge(Row& row, const Row& next);
  void merge_pairs();
  Value::List delays_by_stage() const;

  std::vector<Row> rows_;
  std::set<int> stages_;  // The stages whose lateness was told; they have columns.
  std::int64_t steps_in_row_ = 1;
  std::deque<Eval> evals_;
  std::deque<Told> told_;
  std::int64_t step_ = 0;                 // The newest.
  std::optional<double> begun_, newest_;  // The times of the first and the last event.
};

}  // namespace troupe::apps
