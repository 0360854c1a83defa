#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/checkpoint/manifest.h"
#include "storage/files/claim.h"
#include "storage/files/safetensors.h"

namespace troupe::storage {

/// All that is needed to go on as if nothing had been. The tensors are in host memory, and nobody
/// writes to them any more.
struct CheckpointContent {
  std::int64_t step = 0;     // Steps that were done.
  std::int64_t samples = 0;  // Position in the order of samples: where the next step begins.
  Value recipe;              // What decides numbers; a digest of it goes into the manifest.
  Value model;               // Which model the weights are of: the section of the configuration.
  Value state;               // What else is small: the loss scale, running means of metrics.
  std::vector<NamedTensor> weights;    // Parameters and buffers, as the ecosystem names them.
  std::vector<NamedTensor> optimizer;  // "<weight>.<moment>".
  /// Of the file of weights: that of the file they were imported from, or what the ecosystem's
  /// loaders ask for.
  Metadata metadata = {{"format", "pt"}};
};

struct Saved {
  std::string directory;
  Manifest manifest;
};

/// Writes `root`/step-000000001000. A crash or an error at any moment leaves what was there before,
/// or the new checkpoint; a save of a step that is there already replaces it. What an earlier save
/// left unfinished is removed first. With a claim the checkpoint is one of its run, and it gets its
/// manifest only while the claim is held; without one the caller sees to it that nobody else is
/// saving below `root`.
Result<Saved> save_checkpoint(Files& files, const std::string& root,
                              const CheckpointContent& content, const RootClaim* claim = nullptr);

/// The halves of a save, for nodes that each write a part of the tensors below one `root`: first
/// each its part (the name tells parts apart: "weights-3"), then one of them the manifest.
Result<Part> write_part(Files& files, const std::string& directory, const std::string& name,
                        PartKind kind, std::span<const NamedTensor> tensors,
                        const Metadata& metadata = {});
/// `manifest` is complete but for the digests, which follow from its parts.
Result<Saved> commit_checkpoint(Files& files, const std::string& directory, Manifest manifest,
                                const RootClaim* claim = nullptr);

/// "step-000000001000"
std::string step_directory(std::int64_t step);

/// A checkpoint on disk as a glance shows it: its manifest was read and sizes were compared, but no
/// tensor was read.
struct ListedCheckpoint {
  /// Unfinished: a crash came before its manifest; nothing was ever promised of it.
  enum class State { complete, unfinished, damaged };

  std::string directory;
  std::int64_t step = 0;
  State state = State::complete;
  std::string problem;               // What is wrong if it is not complete.
  std::optional<Manifest> manifest;  // If it could be read.
};

/// The newest first. A `root` that does not exist has none; one that cannot be read is an error. A
/// checkpoint that cannot be looked at counts as damaged, never as unfinished.
Result<std::vector<ListedCheckpoint>> list_checkpoints(Files& files, const std::string& root);

/// A checkpoint whose every byte was compared with its digests. Tensors are read when asked for:
/// each node takes those of its layers. Verifying and loading use calls that give an error for a
/// page that the disk cannot read; the bytes of weights() and optimizer() are mapped, and whoever
/// touches them dies of such a page.
class Checkpoint {
 public:
  /// Verifies all of it; the error says which file is bad and how.
  static Result<Checkpoint> open(Files& files, const std::string& directory);

  const std::string& directory() const { return directory_; }
  const Manifest& manifest() const { return manifest_; }

  /// In the order in which they were saved.
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

/// A checkpoint that was passed over because something is wrong with it.
struct SkippedCheckpoint {
  std::string directory;
  std::string why;
};

/// The newest checkpoint that verifies, and the newer ones that do not: whoever resumes from it
/// must say so loudly.
struct NewestCheckpoint {
  Checkpoint checkpoint;
  std::vector<SkippedCheckpoint> skipped;
};
/// Nothing if there is no checkpoint yet. That there are some but none is good is an error: to
/// begin again from nothing is for a person to decide. If a run's id is given, checkpoints of other
/// runs do not count.
Result<std::optional<NewestCheckpoint>> open_newest_checkpoint(Files& files,
                                                               const std::string& root,
                                                               const std::string& run = {});

/// What prune_checkpoints() did.
struct Pruned {
  std::vector<std::string> removed;
  std::vector<SkippedCheckpoint> bad;  // Kept, but not counted.
};

/// Keeps the newest `keep` (at least 1) of each run that verify, and removes what is older, and
/// what is unfinished and older than the newest complete one. Nothing is removed before those that
/// stay were read back, so the last good one never goes; nor is a checkpoint whose manifest cannot
/// be read, as nobody can say whose it is. With a claim only checkpoints of its run are removed;
/// without one the caller sees to it that nobody else is saving below `root`.
Result<Pruned> prune_checkpoints(Files& files, const std::string& root, int keep,
                                 const RootClaim* claim = nullptr);

}  // namespace troupe::storage
