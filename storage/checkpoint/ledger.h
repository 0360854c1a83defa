#pragma once

#include <atomic>
#include <cstdint>
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

/// What says which samples a step is of. It never changes while a run goes on.
struct LedgerTerms {
  SampleOrder::Kind order = SampleOrder::Kind::shuffled;
  std::uint64_t seed = 0;
  std::int64_t count = 1;   // Samples in a pass.
  std::int64_t global = 1;  // Samples in a step,
  std::int64_t micro = 1;   // and in a micro-batch.

  SampleOrder samples() const { return {order, seed, count}; }

  friend bool operator==(const LedgerTerms&, const LedgerTerms&) = default;
};

/// A step that was committed, and what it was of.
struct LedgerStep {
  std::int64_t step = 0;     // Steps done with it.
  std::int64_t first = 0;    // Its positions in the order of samples: from here on
  std::int64_t samples = 0;  // so many.
  Digest ids;                // Of the samples that were read,
  Digest content;            // and of their bytes.
  double loss = 0;
  bool is_skipped = false;  // Its gradients overflowed in fp16: it changed no weights.
};

/// Of a step, from those of its micro-batches in their order: of their places, or of their bytes.
Digest digest_of_step(std::span<const Digest> micro_batches);
/// What the samples' ids should be.
Digest ids_of(const LedgerTerms& terms, std::int64_t first);

/// The account of what a run did with its samples: a file of records that only grows, in the run's
/// folder. An attempt begins after a step that is saved, and takes back what was entered beyond it.
/// Where it begins further on than the last one came, as its checkpoint had been passed over, the
/// steps that led to that count again. Any thread.
class Ledger {
 public:
  /// Reads and writes anew no more than the newest segment (records.h), however long the run is.
  static Result<Ledger> open(Files& files, const std::string& path, const LedgerTerms& terms,
                             std::size_t segment_bytes = std::size_t{16} << 20);

  /// An attempt goes on after so many steps. Later steps that were entered were not to be.
  Status begin(std::int64_t after);
  Status enter(const LedgerStep& step);
  /// A checkpoint of so many steps is on the disk, below that folder: whoever goes on with the run
  /// must find it or a later one.
  Status saved(std::int64_t step, const std::string& below);
  /// How many steps it has: that were entered, and not taken back.
  std::int64_t steps() const;
  /// Returns when all that was entered is on the disk: before a checkpoint of it is.
  Status sync();

 private:
  Ledger(RecordWriter records, const LedgerTerms& terms);

  struct State {
    State(RecordWriter opened, const LedgerTerms& agreed)
        : records(std::move(opened)), terms(agreed) {}

    std::mutex mutex;
    RecordWriter records;
    LedgerTerms terms;
    std::atomic<std::int64_t> steps = 0;  // Read while somebody writes.
  };
  std::unique_ptr<State> state_;
};

/// The newest step that a ledger says is saved, and the folder below which it is. Nothing if no
/// step was saved since the run last began at step 0.
struct SaveOnRecord {
  std::int64_t step = 0;
  std::string below;
};
Result<std::optional<SaveOnRecord>> newest_save(Files& files, const std::string& path);

/// What a ledger proves.
struct Audit {
  std::int64_t steps = 0;    // Committed, and not taken back.
  std::int64_t samples = 0;  // Of these.
  std::int64_t passes = 0;   // That are whole.
  std::int64_t attempts = 0;
  std::int64_t skipped = 0;     // Committed steps that changed no weights.
  std::int64_t taken_back = 0;  // Steps that were entered and were not to be.
  std::int64_t read_again = 0;  // Committed steps whose data has the same bytes now.
  bool is_torn = false;         // The last line was not finished.
  std::string flaw;  // The first sample that is not in exactly one committed step, or why that
                     // cannot be told; empty: each sample of each pass is.
};

/// Follows a ledger from its first line on, and finds for each sample of each pass the one step
/// that it was in: by what was read, not by what should have been. With the run's data it reads all
/// of that again, and compares the bytes.
Audit audit(std::string_view ledger, const Dataset* data = nullptr);

}  // namespace troupe::storage
