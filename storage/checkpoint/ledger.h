#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/digest.h"
#include "core/result.h"
#include "storage/data/dataset.h"
#include "storage/data/order.h"
#include "storage/files/records.h"

namespace troupe::storage {

/// The parameters that determine which samples a step reads. During a run only the weights of a
/// mixture and the list of steps that are left out change, for steps that are not done yet.
struct LedgerTerms {
  SampleOrder::Kind order = SampleOrder::Kind::shuffled;
  std::uint64_t seed = 0;
  std::int64_t count = 1;                   // Samples in a pass.
  std::int64_t global = 1;                  // Samples in a step.
  std::int64_t micro = 1;                   // Samples in a micro-batch.
  std::string mix = {};                     // The mixture, if there is one,
  std::vector<std::int64_t> counts = {};    // and the samples of each of its sources.
  std::vector<std::int64_t> left_out = {};  // Steps whose samples change no weights, in order.

  SampleOrder samples() const;

  friend bool operator==(const LedgerTerms&, const LedgerTerms&) = default;
};

/// A committed step and the samples that it read.
struct LedgerStep {
  std::int64_t step = 0;     // Steps done, this one included.
  std::int64_t first = 0;    // The step's first position in the order of samples.
  std::int64_t samples = 0;  // The number of its positions.
  Digest ids;                // A digest of the samples that were read.
  Digest content;            // A digest of their bytes.
  double loss = 0;           // It may not be finite if the step was left out.
  /// It changed no weights: its gradients overflowed, no target counted, or it was left out.
  bool is_skipped = false;
  /// The number of its samples of each source of a mixture. The ledger counts them.
  std::vector<std::int64_t> of_sources = {};
  std::optional<double> norm = {};  // The gradients' norm, if the run judges it.
};

/// The numbers of a step that changed weights.
struct StepNumbers {
  double loss = 0;
  std::optional<double> norm = {};

  friend bool operator==(const StepNumbers&, const StepNumbers&) = default;
};

/// Combines the micro-batches' digests of samples or of bytes, in order, into that of their step.
Digest digest_of_step(std::span<const Digest> micro_batches);
/// Returns the digest of the samples that a step at position `first` should read.
Digest ids_of(const LedgerTerms& terms, std::int64_t first);
/// The same, for a caller that has the order of the terms.
Digest ids_of(const LedgerTerms& terms, const SampleOrder& order, std::int64_t first);

/// A run's account of its samples: a file of records in the run's folder that only grows. An
/// attempt begins after a saved step and takes back later steps. If it begins further on than the
/// last attempt reached, because a checkpoint was skipped then, the steps up to there count again.
/// Thread-safe.
class Ledger {
 public:
  /// Opens a ledger. Reads and rewrites only the newest segment (records.h), however long the run.
  static Result<Ledger> open(Files& files, const std::string& path, const LedgerTerms& terms,
                             std::size_t segment_bytes = std::size_t{16} << 20);

  /// Returns the numbers of the last `count` steps up to a step that changed weights, by step.
  Result<std::map<std::int64_t, StepNumbers>> numbers_until(std::int64_t step,
                                                            std::int64_t count) const;
  /// Sets the terms of the attempts that begin from now on.
  void change(const LedgerTerms& terms);
  /// Begins an attempt after step `after`. Takes back later steps.
  Status begin(std::int64_t after);
  Status enter(const LedgerStep& step);
  /// Records that a checkpoint of `step` is on the disk below the folder `below`. A resumed run
  /// must find this checkpoint or a later one.
  Status saved(std::int64_t step, const std::string& below);
  /// Returns the number of steps that were entered and not taken back.
  std::int64_t steps() const;
  /// Returns when all entries are on the disk. Call it before a checkpoint becomes durable.
  Status sync();

 private:
  Ledger(Files& files, const std::string& path, RecordWriter records, const LedgerTerms& terms);

  struct State {
    State(Files& on, std::string at, RecordWriter opened, const LedgerTerms& agreed)
        : files(on),
          path(std::move(at)),
          records(std::move(opened)),
          terms(agreed),
          order(agreed.samples()) {}

    Files& files;
    const std::string path;
    std::mutex mutex;
    RecordWriter records;
    LedgerTerms terms;
    SampleOrder order;                    // The order of the terms.
    std::atomic<std::int64_t> steps = 0;  // Read without the mutex.
  };
  std::unique_ptr<State> state_;
};

/// The newest step that a ledger records as saved, and the folder of its checkpoint. newest_save()
/// returns nothing if no step was saved since the run last began at step 0.
struct SaveOnRecord {
  std::int64_t step = 0;
  std::string below;
};
Result<std::optional<SaveOnRecord>> newest_save(Files& files, const std::string& path);

/// The samples of one source of a mixture in committed steps.
struct AuditedSource {
  std::string name;
  std::int64_t samples = 0;
  std::int64_t passes = 0;  // Complete ones.
};

/// The committed steps of one phase of a mixture.
struct AuditedPhase {
  std::int64_t first = 0;                // The first step, counted from 1.
  std::int64_t last = 0;                 // The last committed one.
  std::vector<std::int64_t> of_sources;  // The samples of each source.
};

/// The findings of an audit.
struct Audit {
  std::int64_t steps = 0;    // Committed steps that were not taken back.
  std::int64_t samples = 0;  // Samples of these steps.
  std::int64_t passes = 0;   // Complete passes over the data.
  std::int64_t attempts = 0;
  std::int64_t skipped = 0;            // Committed steps that changed no weights.
  std::vector<std::int64_t> left_out;  // Committed steps whose samples were left out.
  std::int64_t taken_back = 0;         // Entered steps that were taken back.
  std::int64_t read_again = 0;         // Committed steps whose data still has the same bytes.
  std::vector<AuditedSource> sources;  // Empty unless there is a mixture.
  std::vector<AuditedPhase> phases;    // The phases with committed steps.
  bool is_torn = false;                // The last line is unfinished.
  std::string flaw;  // The first sample that is not in exactly one committed step, or why that is
                     // unknown. Empty if there is none.
};

/// Follows a ledger from its first line and finds the one step that read each sample of each pass.
/// It trusts the recorded digests, not the schedule. If `data` is given, reads all samples again
/// and compares their bytes.
Audit audit(std::string_view ledger, const Dataset* data = nullptr);

}  // namespace troupe::storage
