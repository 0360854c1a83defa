#pragma once

#include <memory>
#include <string>

#include "core/result.h"
#include "storage/files/files.h"

namespace troupe::storage {

/// This process in words: "process 4711 on alpha, since 2026-11-25 09:44:06 UTC".
std::string this_holder();

/// 16 hexadecimal digits that no other claim has.
std::string new_claim_id();

/// Locks a folder, by FOLDER/lock, against every other writer. The error says who holds the lock,
/// and ends with `advice`: what to do.
Result<std::unique_ptr<FileLock>> lock_folder(Files& files, const std::string& folder,
                                              const std::string& advice);

/// The right of one run to write checkpoints below a folder. Two things guard it:
/// - A lock on ROOT/lock, which the system takes back when its process ends.
/// - ROOT/owner, which names the run, a term that grows with each claim, and the process. A claim
///   replaces it, and whoever is about to give a manifest its name reads it again. So a process
///   whose lock a network file system has lost, or never had, finds that another came after it.
///   Between that look and the rename another claim can still slip in; nothing closes this gap on
///   a file system without locks.
class RootClaim {
 public:
  /// Makes the folder if it is missing. `run` is the run's id.
  static Result<RootClaim> take(Files& files, const std::string& root, const std::string& run);

  const std::string& run() const { return run_; }
  /// An error if another process has claimed the folder since, or this claim was given back.
  Status still_held() const;
  /// Lets the next writer in; from now on nothing can be written by this claim.
  void give_back();

 private:
  RootClaim(Files& files, const std::string& root, const std::string& run)
      : files_(&files), root_(root), run_(run) {}
  Status write_owner(bool is_first);

  Files* files_;
  std::string root_;
  std::string run_;
  std::string owner_;  // What the owner file says while the claim is held.
  std::unique_ptr<FileLock> lock_;
};

}  // namespace troupe::storage
