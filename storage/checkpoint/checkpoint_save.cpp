#include <algorithm>
#include <cstdio>

#include "core/byte_text.h"
#include "core/json.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/checkpoint/checkpoint_layout.h"

namespace troupe::storage {
namespace {

std::vector<TensorView> views(std::span<const NamedTensor> tensors) {
  std::vector<TensorView> all;
  for (const auto& [name, tensor] : tensors) all.push_back(view(name, tensor));
  return all;
}

/// Returns the bytes of a save, plus a tenth for the manifest and the file system.
std::uint64_t bytes_needed(const CheckpointContent& content) {
  const auto bytes = safetensors_bytes(views(content.weights), content.metadata) +
                     safetensors_bytes(views(content.optimizer), {});
  return bytes + bytes / 10 + 4096;
}

/// Returns a suffix for the parts' names that no file has. Replacing a checkpoint of the same step
/// must not touch its files: it stays good until the new manifest is there.
Result<std::string> free_suffix(Files& files, const std::string& directory) {
  const auto entries = files.list(directory);
  if (!entries) return entries.error();
  for (int attempt = 1;; ++attempt) {
    const auto suffix = attempt == 1 ? std::string() : "-" + std::to_string(attempt);
    const auto taken = [&](const DirectoryEntry& entry) {
      return entry.name == "weights" + suffix + ".safetensors" ||
             entry.name == "optimizer" + suffix + ".safetensors";
    };
    if (std::none_of(entries->begin(), entries->end(), taken)) return suffix;
  }
}

/// Removes files that the manifest does not name. A later save retries what cannot be removed now.
void remove_strays(Files& files, const std::string& directory, const Manifest& manifest) {
  const auto entries = files.list(directory);
  if (!entries) return;
  for (const auto& entry : *entries) {
    const auto named = [&](const Part& part) { return part.file == entry.name; };
    if (entry.name != manifest_name &&
        std::none_of(manifest.parts.begin(), manifest.parts.end(), named))
      (void)files.remove(directory + "/" + entry.name);
  }
}

/// Cleans up after a failed save, unless its manifest was already in place when the save failed.
void remove_failed(Files& files, const std::string& directory,
                   const std::vector<std::string>& written) {
  const auto manifest = open_manifest(files, directory);
  if (manifest)
    for (const auto& part : manifest->parts)
      if (std::find(written.begin(), written.end(), directory + "/" + part.file) != written.end())
        return;
  // An unreadable manifest may name these files.
  const auto has_manifest = files.exists(directory + "/" + std::string(manifest_name));
  if (!manifest && (!has_manifest.ok() || *has_manifest)) return;
  for (const auto& path : written) (void)files.remove(path);
  if (!manifest) (void)files.remove(directory);
}

Result<Saved> save_into(Files& files, const std::string& directory,
                        const CheckpointContent& content, const RootClaim* claim,
                        std::vector<std::string>& written) {
  auto suffix = free_suffix(files, directory);
  if (!suffix) return suffix.error();
  Manifest manifest;
  if (claim) manifest.run = claim->run();
  manifest.step = content.step;
  manifest.samples = content.samples;
  manifest.recipe = content.recipe;
  manifest.model = content.model;
  manifest.state = content.state;
  const auto add = [&](PartKind kind, std::span<const NamedTensor> tensors,
                       const Metadata& metadata) -> Status {
    const auto name = std::string(to_string(kind)) + *suffix;
    auto part = write_part(files, directory, name, kind, tensors, metadata);
    if (!part) return part.error();
    written.push_back(directory + "/" + part->file);
    manifest.parts.push_back(std::move(*part));
    return Done{};
  };
  if (auto status = add(PartKind::weights, content.weights, content.metadata); !status)
    return status.error();
  if (!content.optimizer.empty())
    if (auto status = add(PartKind::optimizer, content.optimizer, {}); !status)
      return status.error();
  return commit_checkpoint(files, directory, std::move(manifest), claim);
}

}  // namespace

std::string step_directory(std::int64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "step-%012lld", static_cast<long long>(step));
  return name;
}

Result<Part> write_part(Files& files, const std::string& directory, const std::string& name,
                        PartKind kind, std::span<const NamedTensor> tensors,
                        const Metadata& metadata) {
  Part part;
  part.file = name + ".safetensors";
  part.kind = kind;
  const auto all = views(tensors);
  const auto written = write_safetensors(files, directory + "/" + part.file, all, metadata);
  if (!written) return written.error();
  part.bytes = written->bytes;
  part.digest = written->digest;
  for (const auto& tensor : all) part.tensors.push_back(tensor_digest(tensor));
  return part;
}

Result<Saved> commit_checkpoint(Files& files, const std::string& directory, Manifest manifest,
                                const RootClaim* claim) {
  if (auto status = check_parts(manifest.parts); !status) return within(directory, status.error());
  manifest.recipe_digest = digest_of(to_json(manifest.recipe));
  manifest.weights_digest = weights_digest(manifest.parts);
  // The names of the parts must be on the disk before the manifest is. The directory's own name may
  // not be, if the process that created it was killed.
  if (auto status = files.sync_directory(directory); !status) return status.error();
  if (auto status = files.sync_directory(parent_of(directory)); !status) return status.error();
  if (claim)
    if (auto held = claim->still_held(); !held) return held.error();
  const auto path = directory + "/" + std::string(manifest_name);
  if (auto status = replace_file(files, path, write_manifest(manifest)); !status)
    return status.error();
  remove_strays(files, directory, manifest);
  return Saved{directory, std::move(manifest)};
}

Result<Saved> save_checkpoint(Files& files, const std::string& root,
                              const CheckpointContent& content, const RootClaim* claim) {
  assert(content.step >= 0 && content.samples >= 0);
  // Check the claim before anything is removed.
  if (claim)
    if (auto held = claim->still_held(); !held) return held.error();
  if (auto status = files.make_directory(root); !status) return status.error();
  if (auto swept = remove_unfinished(files, root, content.step); !swept) return swept.error();
  const auto free = files.free_space(root);
  if (!free) return free.error();
  if (const auto needed = bytes_needed(content); *free < needed)
    return Error{root + ": step " + std::to_string(content.step) + " needs " +
                 byte_text(static_cast<std::int64_t>(needed)) + " and only " +
                 byte_text(static_cast<std::int64_t>(*free)) +
                 " are free; make room, or set checkpoint.keep lower"};
  const auto directory = root + "/" + step_directory(content.step);
  if (auto status = files.make_directory(directory); !status) return status.error();
  std::vector<std::string> written;
  auto saved = save_into(files, directory, content, claim, written);
  if (!saved) remove_failed(files, directory, written);
  return saved;
}

}  // namespace troupe::storage
