#include "storage/checkpoint/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "storage/checkpoint/checkpoint_layout.h"

namespace troupe::storage {
namespace {

/// Returns the step in a directory's name, or nothing if it is no checkpoint's directory.
std::optional<std::int64_t> step_in_name(std::string_view name) {
  constexpr std::string_view prefix = "step-";
  if (!name.starts_with(prefix)) return {};
  std::int64_t step = 0;
  const char* end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + prefix.size(), end, step);
  if (read.ec != std::errc() || read.ptr != end || step < 0 || step_directory(step) != name)
    return {};
  return step;
}

Error wrong_size(const std::string& path, std::uint64_t found, std::uint64_t wanted) {
  return {path + ": has " + std::to_string(found) + " bytes; the manifest says " +
          std::to_string(wanted)};
}

Status check_sizes(Files& files, const std::string& directory, const Manifest& manifest) {
  for (const auto& part : manifest.parts) {
    const auto path = directory + "/" + part.file;
    const auto entry = files.inspect(path);
    if (!entry) return entry.error();
    if (entry->bytes != part.bytes) return wrong_size(path, entry->bytes, part.bytes);
  }
  return Done{};
}

/// An entry of a root under the name of a checkpoint.
struct StepEntry {
  std::string path;
  std::int64_t step = 0;
  DirectoryEntry entry;

  bool is_directory() const { return entry.kind == DirectoryEntry::Kind::directory; }
};

/// Returns the entries of a root, newest step first, or none if there is no root.
Result<std::vector<StepEntry>> step_entries(Files& files, const std::string& root) {
  std::vector<StepEntry> found;
  const auto there = files.exists(root);
  if (!there.ok()) return there.error();
  if (!*there) return found;
  const auto entries = files.list(root);
  if (!entries) return entries.error();
  for (const auto& entry : *entries)
    if (const auto step = step_in_name(entry.name))
      found.push_back({root + "/" + entry.name, *step, entry});
  std::ranges::sort(found, std::ranges::greater(), &StepEntry::step);
  return found;
}

ListedCheckpoint look_at(Files& files, const std::string& directory, std::int64_t step) {
  using State = ListedCheckpoint::State;
  ListedCheckpoint listed;
  listed.directory = directory;
  listed.step = step;
  const auto has_manifest = files.exists(directory + "/" + std::string(manifest_name));
  if (has_manifest.ok() && !*has_manifest) {
    listed.state = State::unfinished;
    listed.problem = directory + ": has no manifest; its save was interrupted";
    return listed;
  }
  auto manifest =
      has_manifest.ok() ? open_manifest(files, directory) : Result<Manifest>(has_manifest.error());
  const auto status = manifest ? check_sizes(files, directory, *manifest) : manifest.error();
  if (manifest) listed.manifest = std::move(*manifest);
  if (!status) {
    listed.state = State::damaged;
    listed.problem = status.error().text;
  }
  return listed;
}

bool same_tensors(const Safetensors& file, const Part& part) {
  return std::equal(file.tensors().begin(), file.tensors().end(), part.tensors.begin(),
                    part.tensors.end(), [](const TensorView& found, const TensorDigest& said) {
                      return found.name == said.name && found.type == said.type &&
                             found.shape == said.shape;
                    });
}

/// Reads by calls that can fail, because a bad page in a mapping raises a signal.
Result<Digest> digest_of_file(const FileReader& file) {
  constexpr std::uint64_t piece = std::uint64_t{1} << 20;
  std::vector<std::byte> buffer(std::min(piece, file.size()));
  Digester digester;
  for (std::uint64_t at = 0; at < file.size(); at += buffer.size()) {
    const auto part =
        std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), file.size() - at));
    if (auto read = file.read(at, part); !read) return read.error();
    digester.add(part);
  }
  return digester.finish();
}

/// Removes the manifest first. From then on the directory counts as unfinished, not as damaged.
Status remove_directory(Files& files, const std::string& directory) {
  const auto entries = files.list(directory);
  if (!entries) return entries.error();
  for (const auto& entry : *entries) {
    if (entry.name != manifest_name) continue;
    if (auto status = files.remove(directory + "/" + entry.name); !status) return status;
    if (auto status = files.sync_directory(directory); !status) return status;
  }
  for (const auto& entry : *entries)
    if (entry.name != manifest_name)
      if (auto status = files.remove(directory + "/" + entry.name); !status) return status;
  if (auto status = files.remove(directory); !status) return status;
  return files.sync_directory(parent_of(directory));
}

}  // namespace

Result<Manifest> open_manifest(Files& files, const std::string& directory) {
  const auto path = directory + "/" + std::string(manifest_name);
  const auto bytes = files.read(path);
  if (!bytes) return bytes.error();
  auto manifest = read_manifest(bytes->text());
  if (!manifest) return within(path, manifest.error());
  if (step_directory(manifest->step) != name_of(directory))
    return Error{path + ": is of step " + std::to_string(manifest->step) +
                 ", which belongs elsewhere"};
  return manifest;
}

Result<std::vector<ListedCheckpoint>> list_checkpoints(Files& files, const std::string& root) {
  const auto entries = step_entries(files, root);
  if (!entries) return entries.error();
  std::vector<ListedCheckpoint> found;
  for (const auto& [path, step, entry] : *entries) {
    if (entry.kind == DirectoryEntry::Kind::directory) found.push_back(look_at(files, path, step));
    if (entry.kind == DirectoryEntry::Kind::unknown)
      found.push_back({path, step, ListedCheckpoint::State::damaged, entry.problem, {}});
  }
  return found;
}

Result<Checkpoint> Checkpoint::open(Files& files, const std::string& directory) {
  auto manifest = open_manifest(files, directory);
  if (!manifest) return manifest.error();
  Checkpoint checkpoint;
  checkpoint.directory_ = directory;
  for (const auto& part : manifest->parts) {
    const auto path = directory + "/" + part.file;
    auto reader = files.open(path);
    if (!reader) return reader.error();
    if ((*reader)->size() != part.bytes) return wrong_size(path, (*reader)->size(), part.bytes);
    const auto digest = digest_of_file(**reader);
    if (!digest) return digest.error();
    if (*digest != part.digest)
      return Error{path + ": is damaged: its bytes do not match the digest in the manifest"};
    auto bytes = files.read(path);
    if (!bytes) return bytes.error();
    auto file = Safetensors::parse(std::move(*bytes));
    if (!file) return within(path, file.error());
    if (!same_tensors(*file, part)) return Error{path + ": its tensors differ from the manifest"};
    checkpoint.parts_.push_back({part.kind, std::move(*file), std::move(*reader)});
  }
  checkpoint.manifest_ = std::move(*manifest);
  return checkpoint;
}

Metadata Checkpoint::metadata() const {
  for (const auto& part : parts_)
    if (part.kind == PartKind::weights) return part.file.metadata();
  return {};
}

Result<Tensor> Checkpoint::load_weight(std::string_view name, MemoryPool& pool) const {
  return load(PartKind::weights, name, pool);
}

Result<Tensor> Checkpoint::load_optimizer(std::string_view name, MemoryPool& pool) const {
  return load(PartKind::optimizer, name, pool);
}

std::vector<TensorView> Checkpoint::views(PartKind kind) const {
  std::vector<TensorView> all;
  for (const auto& part : parts_)
    if (part.kind == kind)
      all.insert(all.end(), part.file.tensors().begin(), part.file.tensors().end());
  return all;
}

Result<Tensor> Checkpoint::load(PartKind kind, std::string_view name, MemoryPool& pool) const {
  for (const auto& part : parts_)
    if (const auto* found = part.kind == kind ? part.file.find(name) : nullptr) {
      // Read by calls that can fail: touching a bad page of the mapping would kill the process.
      std::vector<std::byte> bytes(found->bytes.size());
      if (auto read = part.reader->read(part.file.offset_of(*found), bytes); !read)
        return read.error();
      auto tensor = storage::load({found->name, found->type, found->shape, bytes}, pool);
      if (!tensor) return within(directory_, tensor.error());
      return tensor;
    }
  return Error{directory_ + ": has no tensor \"" + std::string(name) + "\" among its " +
               std::string(to_string(kind))};
}

Result<std::optional<NewestCheckpoint>> open_newest_checkpoint(Files& files,
                                                               const std::string& root,
                                                               const std::string& run) {
  using State = ListedCheckpoint::State;
  const auto listed = list_checkpoints(files, root);
  if (!listed) return listed.error();
  std::vector<SkippedCheckpoint> skipped;
  std::string damage;
  for (const auto& each : *listed) {
    const bool is_anothers =
        !run.empty() && each.manifest && !each.manifest->run.empty() && each.manifest->run != run;
    if (is_anothers) continue;
    std::string problem = each.problem;
    if (each.state == State::complete) {
      auto checkpoint = Checkpoint::open(files, each.directory);
      if (checkpoint)
        return std::optional(NewestCheckpoint{std::move(*checkpoint), std::move(skipped)});
      problem = checkpoint.error().text;
    }
    if (each.state != State::unfinished) damage += "\n  " + problem;
    skipped.push_back({each.directory, std::move(problem)});
  }
  if (!damage.empty())
    return Error{root +
                 ": has no good checkpoint; move the damaged ones away to begin again:" + damage};
  return std::optional<NewestCheckpoint>();
}

Result<std::vector<std::string>> remove_unfinished(Files& files, const std::string& root,
                                                   std::int64_t last_step) {
  const auto entries = step_entries(files, root);
  if (!entries) return entries.error();
  std::vector<std::string> removed;
  for (const auto& each : *entries) {
    if (!each.is_directory() || each.step > last_step) continue;
    const auto has_manifest = files.exists(each.path + "/" + std::string(manifest_name));
    if (!has_manifest.ok() || *has_manifest) continue;
    // Remove only if a second query confirms that there is no manifest.
    const auto inside = files.list(each.path);
    if (!inside) return inside.error();
    if (std::ranges::count(*inside, manifest_name, &DirectoryEntry::name) > 0)
      return Error{each.path +
                   ": the disk says that there is a manifest, and that there is none; nothing in "
                   "it is removed"};
    if (auto status = remove_directory(files, each.path); !status) return status.error();
    removed.push_back(each.path);
  }
  return removed;
}

namespace {

constexpr const char* validation_loss = "validation_loss";

/// Orders complete evaluated checkpoints: best first. Returns pointers into `listed`.
std::vector<const ListedCheckpoint*> best_first(const std::vector<ListedCheckpoint>& listed) {
  std::vector<const ListedCheckpoint*> evaluated;
  for (const auto& each : listed)
    if (each.state == ListedCheckpoint::State::complete && validation_loss_in(each.manifest->state))
      evaluated.push_back(&each);
  std::ranges::sort(evaluated, {}, [](const auto* each) {
    return std::pair(*validation_loss_in(each->manifest->state), each->step);
  });
  return evaluated;
}

}  // namespace

std::optional<double> validation_loss_in(const Value& state) {
  const Value* loss = state.find(validation_loss);
  if (!loss || !loss->is_number() || !std::isfinite(loss->number())) return {};
  return loss->number();
}

void set_validation_loss(Value& state, std::optional<double> loss) {
  if (loss) state.set(validation_loss, *loss);
}

WantedCheckpoint wanted_checkpoint(std::string_view text) {
  constexpr std::string_view suffix = "@best";
  if (!text.ends_with(suffix)) return {std::string(text), false};
  return {std::string(text.substr(0, text.size() - suffix.size())), true};
}

Result<std::string> best_checkpoint(Files& files, const std::string& root) {
  const auto listed = list_checkpoints(files, root);
  if (!listed) return listed.error();
  const auto best = best_first(*listed);
  if (best.empty())
    return Error{root +
                 ": no checkpoint was saved right after an evaluation; checkpoint.keep_best = 1 "
                 "saves the best state"};
  return best.front()->directory;
}

Result<Pruned> prune_checkpoints(Files& files, const std::string& root, const KeepCount& keep,
                                 const RootClaim* claim) {
  using State = ListedCheckpoint::State;
  assert(keep.newest >= 1);
  if (claim)
    if (auto held = claim->still_held(); !held) return held.error();
  Pruned pruned;
  const auto listed = list_checkpoints(files, root);
  if (!listed) return listed.error();
  // Spare later steps: a save of one may be under way.
  for (const auto& each : *listed) {
    if (each.state != State::complete) continue;
    auto unfinished = remove_unfinished(files, root, each.step);
    if (!unfinished) return unfinished.error();
    pruned.removed = std::move(*unfinished);
    break;
  }
  std::map<std::string, int> good;  // Good checkpoints by run.
  // With nothing to remove, nothing needs reading.
  if (listed->size() <= static_cast<std::size_t>(keep.newest)) return pruned;
  const auto check = [&](const ListedCheckpoint& each) -> Status {
    if (each.state != State::complete) return Error{each.problem};
    const auto checkpoint = Checkpoint::open(files, each.directory);
    if (!checkpoint) return checkpoint.error();
    // The sync at the end of its save may have failed.
    return files.sync_directory(each.directory);
  };
  // A checkpoint that belongs to any run counts for the run that prunes.
  const auto owner_of = [&](const ListedCheckpoint& each) {
    return claim ? claim->run() : each.manifest->run;
  };
  const auto is_anothers = [&](const ListedCheckpoint& each) {
    return claim && !each.manifest->run.empty() && each.manifest->run != claim->run();
  };
  std::map<std::string, int> best;
  std::set<std::string> stay;  // Directories of the best ones, which verify.
  for (const auto* each : best_first(*listed))
    if (!is_anothers(*each) && best[owner_of(*each)] < keep.best && check(*each)) {
      ++best[owner_of(*each)];
      stay.insert(each->directory);
    }
  for (const auto& each : *listed) {
    if (each.state == State::unfinished) continue;
    if (!each.manifest) {
      pruned.bad.push_back({each.directory, each.problem});
      continue;
    }
    if (is_anothers(each)) continue;
    const auto owner = owner_of(each);
    if (good[owner] == keep.newest) {
      if (stay.contains(each.directory)) continue;
      if (auto status = remove_directory(files, each.directory); !status) return status.error();
      pruned.removed.push_back(each.directory);
      continue;
    }
    const bool is_checked = stay.contains(each.directory);
    if (const auto checked = is_checked ? Status(Done{}) : check(each); checked)
      ++good[owner];
    else
      pruned.bad.push_back({each.directory, checked.error().text});
  }
  return pruned;
}

}  // namespace troupe::storage
