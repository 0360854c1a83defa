#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/value.h"
#include "storage/files/files.h"
#include "storage/files/records.h"

namespace troupe::storage {

/// The mean loss on data that the model is not trained on.
struct EvaluatedStep {
  std::int64_t step = 0;
  double loss = 0;

  friend bool operator==(const EvaluatedStep&, const EvaluatedStep&) = default;
};

/// A run's evaluations, by step: a file of records in the run's folder. An attempt that begins
/// after a step takes back the evaluations of later steps, which come again. Thread-safe.
class EvaluationLog {
 public:
  /// Opens a log, or begins one. `files` outlives it. The file is made with the first evaluation.
  static Result<EvaluationLog> open(Files& files, const std::string& path);

  /// Begins an attempt after step `after`. Takes back later evaluations.
  Status begin(std::int64_t after);
  Status enter(const EvaluatedStep& evaluated);
  /// Returns when all entries are on the disk.
  Status sync();

  /// Returns the evaluations that were not taken back, in the order of their steps.
  std::vector<EvaluatedStep> all() const;

 private:
  struct State {
    State(Files& disk, std::string file) : files(disk), path(std::move(file)) {}

    Files& files;
    const std::string path;
    std::mutex mutex;
    std::unique_ptr<RecordWriter> records;  // Null: no file is open yet.
    std::vector<Value> waiting;             // Records that come once it is open.
    std::vector<EvaluatedStep> all;

    Status append(Value record);
    Status flush();
  };
  explicit EvaluationLog(std::unique_ptr<State> state) : state_(std::move(state)) {}

  std::unique_ptr<State> state_;
};

/// Takes back the evaluations of steps after `after`.
void take_back(std::vector<EvaluatedStep>& evaluations, std::int64_t after);

}  // namespace troupe::storage
