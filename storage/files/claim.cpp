#include "storage/files/claim.h"

#include <chrono>
#include <cstdio>
#include <ctime>

#include "core/json.h"

namespace troupe::storage {
namespace {

constexpr JsonLimits owner_limits = {.bytes = 4096, .depth = 4};

std::string in_words(Env::WallTime time) {
  const auto now = static_cast<std::time_t>(
      std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count());
  std::tm parts{};
  char text[40];
  ::gmtime_r(&now, &parts);
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

std::string holder_in(const Value& owner) {
  const auto holder = text_in(owner, "holder");
  return holder.empty() ? std::string("another process") : holder;
}

}  // namespace

std::string Claimant::holder() const { return process + ", since " + in_words(env.wall_time()); }

std::string Claimant::new_id() const {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(env.random()));
  return text;
}

Result<std::unique_ptr<FileLock>> lock_folder(Files& files, const Claimant& claimant,
                                              const std::string& folder,
                                              const std::string& advice) {
  auto lock = files.lock(folder + "/lock", claimant.holder());
  if (!lock) return Error{lock.error().text + "; " + advice};
  return lock;
}

Result<RootClaim> RootClaim::take(Files& files, const Claimant& claimant, const std::string& root,
                                  const std::string& run) {
  if (auto made = files.make_directory(root); !made) return made.error();
  auto lock = lock_folder(files, claimant, root,
                          "wait until it has ended, stop it, or set another checkpoint.dir");
  if (!lock) return lock.error();
  RootClaim claim(files, root, run);
  claim.lock_ = std::move(*lock);
  const std::string path = root + "/owner";
  const auto there = files.exists(path);
  if (!there.ok()) return there.error();
  std::int64_t term = 0;
  if (*there) {
    const auto bytes = files.read(path);
    if (!bytes) return bytes.error();
    // A file that cannot be parsed is replaced like any other.
    const auto before = parse_json(bytes->text(), owner_limits);
    if (const Value* old = before ? before->find("term") : nullptr; old && old->integer())
      term = *old->integer();
  }
  Value owner;
  owner.set("run", run);
  owner.set("term", term + 1);
  owner.set("holder", claimant.holder());
  owner.set("claim", claimant.new_id());
  claim.owner_ = to_json(owner) + "\n";
  if (auto written = claim.write_owner(!*there, claimant.new_id()); !written)
    return written.error();
  if (auto held = claim.still_held(); !held) return held.error();
  return claim;
}

/// Creates the first owner file by a link, which succeeds for only one of several processes. A
/// later owner file replaces the one before it by a rename.
Status RootClaim::write_owner(bool is_first, const std::string& id) {
  const std::string path = root_ + "/owner";
  const std::string temporary = path + "." + id;
  const std::span<const char> text(owner_);
  if (auto written = write_new_file(*files_, temporary, {std::as_bytes(text)}); !written)
    return written;
  if (is_first && files_->link(temporary, path)) {
    (void)files_->remove(temporary);
  } else {
    const auto there = files_->exists(path);
    // A file system without links fails the link too, but then the name is still free.
    const bool is_taken = is_first && (!there.ok() || *there);
    auto renamed = is_taken ? Status(Error{path + ": another process has just made it; try again"})
                            : files_->rename(temporary, path);
    if (!renamed) {
      (void)files_->remove(temporary);
      return renamed;
    }
  }
  return files_->sync_directory(root_);
}

Status RootClaim::still_held() const {
  const std::string path = root_ + "/owner";
  if (!lock_) return Error{root_ + ": this run has ended and writes no more checkpoints"};
  const auto bytes = files_->read(path);
  if (!bytes) return bytes.error();
  if (bytes->text() == owner_) return Done{};
  const auto owner = parse_json(bytes->text(), owner_limits);
  return Error{path + ": the folder was taken over by " +
               (owner ? holder_in(*owner) : std::string("another process")) +
               "; this process saves nothing there any more: stop one of the two"};
}

void RootClaim::give_back() { lock_.reset(); }

}  // namespace troupe::storage
