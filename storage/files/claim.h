#pragma once

#include <memory>
#include <string>

#include "core/env.h"
#include "core/result.h"
#include "storage/files/files.h"

namespace troupe::storage {

/// A process that claims folders. The environment outlives it.
struct Claimant {
  Env& env;
  std::string process;  // "process 4711 on alpha"

  /// Describes the process as a holder: "process 4711 on alpha, since 2026-11-25 09:44:06 UTC".
  std::string holder() const;
  /// Returns 16 random hexadecimal digits that identify a claim.
  std::string new_id() const;
};

/// Locks a folder against every other writer, through FOLDER/lock. If the lock is held, the error
/// names its holder and ends with `advice`: what to do.
Result<std::unique_ptr<FileLock>> lock_folder(Files& files, const Claimant& claimant,
                                              const std::string& folder, const std::string& advice);

/// The right of one run to write checkpoints below a folder. Two files guard it:
/// - ROOT/lock is locked. The system releases the lock when its process ends.
/// - ROOT/owner names the run, the process and a term that grows with each claim. A new claim
/// replaces
///   it. A writer reads it before it renames a manifest into place, and so notices a newer claim
///   even if a network file system lost its lock.
/// Another claim can come between that check and the rename. Without locks nothing closes this gap.
class RootClaim {
 public:
  /// Claims a folder for the run with id `run`. Creates the folder if it is missing.
  static Result<RootClaim> take(Files& files, const Claimant& claimant, const std::string& root,
                                const std::string& run);

  const std::string& run() const { return run_; }
  /// Returns an error if another process has claimed the folder or this claim was given back.
  Status still_held() const;
  /// Releases the claim for the next writer. This claim then refuses every write.
  void give_back();

 private:
  RootClaim(Files& files, const std::string& root, const std::string& run)
      : files_(&files), root_(root), run_(run) {}
  Status write_owner(bool is_first, const std::string& id);

  Files* files_;
  std::string root_;
  std::string run_;
  std::string owner_;  // The contents of the owner file while the claim is held.
  std::unique_ptr<FileLock> lock_;
};

}  // namespace troupe::storage
