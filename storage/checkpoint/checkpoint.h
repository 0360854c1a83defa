#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/checkpoint/manifest.h"
#include "storage/files/claim.h"
#include "storage/files/safetensors.h"

namespace troupe::storage {

/// All that a run needs to continue as if it had not stopped. Tensors are in host memory, and
/// nobody writes to them any more.
struct CheckpointContent {
  std::int64_t step = 0;     // Steps done.
  std::int64_t samples = 0;  // Position in the order of samples at which the next step begins.
  Value recipe;              // Everything that determines numbers. The manifest has a digest of it.
  Value model;               // The model section of the configuration.
  Value state;               // Small state: the loss scale, running means of metrics.
  std::vector<NamedTensor> weights;    // Parameters and buffers under their public names.
  std::vector<NamedTensor> optimizer;  // "<weight>.<moment>".
  /// Metadata of the file of weights: that of an imported file, or what common loaders expect.
  Metadata metadata = {{"format", "pt"}};
};

struct Saved {
  std::string directory;
  Manifest manifest;
};

/// Writes `root`/step-000000001000. After a crash or an error at any moment, either the previous
/// state or the new checkpoint is there. Replaces a checkpoint of the same step, and first removes
/// unfinished saves. With a claim, the checkpoint belongs to the claim's run, and its manifest is
/// written only while the claim is held. Without one, the caller ensures that nobody else saves
/// below `root`.
Result<Saved> save_checkpoint(Files& files, const std::string& root,
                              const CheckpointContent& content, const RootClaim* claim = nullptr);

/// Writes a checkpoint from several nodes below one `root`: first each node writes its part (`name`
/// tells parts apart: "weights-3"), then one node commits the manifest.
Result<Part> write_part(Files& files, const std::string& directory, const std::string& name,
                        PartKind kind, std::span<const NamedTensor> tensors,
                        const Metadata& metadata = {});
/// `manifest` needs everything but the digests, which this computes from its parts.
Result<Saved> commit_checkpoint(Files& files, const std::string& directory, Manifest manifest,
                                const RootClaim* claim = nullptr);

/// Returns "step-000000001000".
std::string step_directory(std::int64_t step);

/// A checkpoint as seen without reading tensors: only the manifest and file sizes were checked.
struct ListedCheckpoint {
  /// unfinished: a crash came before the manifest, so nobody relied on the checkpoint.
  enum class State { complete, unfinished, damaged };

  std::string directory;
  std::int64_t step = 0;
  State state = State::complete;
  std::string problem;               // Why it is not complete.
  std::optional<Manifest> manifest;  // Present if it could be read.
};

/// Lists checkpoints, newest first. Returns none if `root` does not exist, and an error if it
/// cannot be read. A checkpoint that cannot be inspected counts as damaged, never as unfinished.
Result<std::vector<ListedCheckpoint>> list_checkpoints(Files& files, const std::string& root);

/// A checkpoint whose every byte matched its digests. Each node reads the tensors of its layers
/// when it needs them. Verifying and loading return an error for a page that the disk cannot read.
/// The bytes of weights() and optimizer() are mapped: touching such a page there raises a signal.
class Checkpoint {
 public:
  /// Opens and verifies a checkpoint. The error says which file is bad and how.
  static Result<Checkpoint> open(Files& files, const std::string& directory);

  const std::string& directory() const { return directory_; }
  const Manifest& manifest() const { return manifest_; }

  /// Returns views in the order in which the tensors were saved.
  std::vector<TensorView> weights() const { return views(PartKind::weights); }
  std::vector<TensorView> optimizer() const { return views(PartKind::optimizer); }
  Metadata metadata() const;

  Result<Tensor> load_weight(std::string_view name, MemoryPool& pool) const;
  Result<Tensor> load_optimizer(std::string_view name, MemoryPool& pool) const;

 private:
  struct OpenPart {
    PartKind kind;
    Safetensors file;
    std::shared_ptr<const FileReader> reader;
  };
  std::vector<TensorView> views(PartKind kind) const;
  Result<Tensor> load(PartKind kind, std::string_view name, MemoryPool& pool) const;

  std::string directory_;
  Manifest manifest_;
  std::vector<OpenPart> parts_;
};

/// The loss on the validation data after a checkpoint's last step, in its small state; nothing if
/// the model was not evaluated there.
std::optional<double> validation_loss_in(const Value& state);
void set_validation_loss(Value& state, std::optional<double> loss);

/// Returns the directory of the complete checkpoint with the lowest loss on the validation data; of
/// equal losses, that of the earliest step. Fails if none was saved after an evaluation.
Result<std::string> best_checkpoint(Files& files, const std::string& root);

/// A checkpoint as a person names it: "RUN", or "RUN@best" for the best one.
struct WantedCheckpoint {
  std::string of;
  bool best = false;
};
WantedCheckpoint wanted_checkpoint(std::string_view text);

/// A checkpoint that was skipped because something is wrong with it.
struct SkippedCheckpoint {
  std::string directory;
  std::string why;
};

/// The newest checkpoint that verifies, and newer ones that do not. A caller that resumes from it
/// must report the skipped ones.
struct NewestCheckpoint {
  Checkpoint checkpoint;
  std::vector<SkippedCheckpoint> skipped;
};
/// Returns nothing if there is no checkpoint yet. If there are some but none is good, returns an
/// error: a person must decide whether to begin again. If `run` is given, ignores checkpoints of
/// other runs.
Result<std::optional<NewestCheckpoint>> open_newest_checkpoint(Files& files,
                                                               const std::string& root,
                                                               const std::string& run = {});

/// The result of prune_checkpoints().
struct Pruned {
  std::vector<std::string> removed;
  std::vector<SkippedCheckpoint> bad;  // Kept, but not counted.
};

/// How many checkpoints of each run stay.
struct KeepCount {
  int newest = 1;  // At least 1.
  int best = 0;    // Checkpoints with the lowest losses on the validation data.
};

/// Keeps the newest and the best checkpoints of each run that verify. Removes all others, and
/// unfinished ones older than the newest complete one. It reads back the checkpoints that stay
/// before it removes any, so the last good one always stays. It never removes a checkpoint whose
/// manifest cannot be read. With a claim it removes only checkpoints of that run; without one the
/// caller ensures that nobody else saves below `root`.
Result<Pruned> prune_checkpoints(Files& files, const std::string& root, const KeepCount& keep,
                                 const RootClaim* claim = nullptr);

}  // namespace troupe::storage
