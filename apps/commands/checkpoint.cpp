#include "storage/checkpoint/checkpoint.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "apps/command.h"
#include "apps/commands/named_checkpoint.h"
#include "apps/events/number_text.h"
#include "apps/events/terminal_width.h"
#include "apps/real/read_host.h"
#include "apps/weights/adapter.h"
#include "apps/weights/export_folder.h"
#include "apps/weights/foreign_weights.h"
#include "config/huggingface/config_json.h"
#include "config/load.h"
#include "config/model_kinds.h"
#include "core/byte_text.h"
#include "core/json.h"
#include "core/threads/real_env.h"
#include "core/units.h"
#include "models/layers/lora.h"
#include "storage/files/weight_files.h"

namespace troupe::apps {
namespace {

struct FolderArguments {
  std::string path;
};

struct PruneArguments {
  std::string path;
  int keep = 3;
  int keep_best = 0;
};

struct ExportArguments {
  std::string path;
  std::string to;
  std::string dtype;  // Empty: as they are.
  std::string shard;  // The most bytes of a file; empty: as they came.
  bool merge = false;
  bool ema = false;
};

struct ImportArguments {
  std::string file;
  std::string to;
  std::string config;
  std::vector<std::string> accept;
};

constexpr const char* in_use = "wait until that run has ended, or stop it";

std::uint64_t bytes_of(const storage::Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const auto& part : manifest.parts) bytes += part.bytes;
  return bytes;
}

Value summary(const std::string& directory, const storage::Manifest& manifest) {
  Value value;
  value.set("directory", directory);
  value.set("step", manifest.step);
  value.set("samples", manifest.samples);
  if (const auto loss = storage::validation_loss_in(manifest.state))
    value.set("validation_loss", *loss);
  value.set("bytes", static_cast<std::int64_t>(bytes_of(manifest)));
  value.set("weights", to_string(manifest.weights_digest));
  value.set("recipe", to_string(manifest.recipe_digest));
  value.set("model", manifest.model);
  return value;
}

ExitCode ls(const FolderArguments& arguments, const CommonFlags& flags) {
  const auto files = storage::disk_files();
  const auto path = checkpoints_of(*files, arguments.path);
  if (!path) return invalid(path.error());
  const auto listed = storage::list_checkpoints(*files, *path);
  if (!listed) return invalid(listed.error());
  if (listed->empty() && flags.output != "json")
    std::printf("no checkpoint in %s\n", arguments.path.c_str());
  using State = storage::ListedCheckpoint::State;
  const auto best = storage::best_checkpoint(*files, *path);
  for (const auto& checkpoint : *listed) {
    const bool complete = checkpoint.state == State::complete;
    if (flags.output == "json") {
      Value line;
      if (complete) {
        line = summary(checkpoint.directory, *checkpoint.manifest);
      } else {
        line.set("directory", checkpoint.directory);
        line.set("step", checkpoint.step);
        line.set("problem", checkpoint.problem);
      }
      std::puts(to_json(line).c_str());
    } else if (complete) {
      const auto loss = storage::validation_loss_in(checkpoint.manifest->state);
      print_columns(checkpoint.directory + "  step " + std::to_string(checkpoint.step) + "  " +
                    byte_text(static_cast<std::int64_t>(bytes_of(*checkpoint.manifest))) +
                    "  weights " + to_string(checkpoint.manifest->weights_digest) +
                    (loss ? "  validation loss " + loss_text(*loss) : "") +
                    (best.ok() && *best == checkpoint.directory ? "  best" : "") + "\n");
    } else {
      print_columns(checkpoint.directory + "  " +
                    (checkpoint.state == State::damaged ? "DAMAGED" : "unfinished") + ": " +
                    checkpoint.problem + "\n");
    }
  }
  return ExitCode::done;
}

ExitCode inspect(const FolderArguments& arguments, const CommonFlags& flags) {
  const auto files = storage::disk_files();
  const auto checkpoint = open_checkpoint(*files, arguments.path);
  if (!checkpoint) return invalid(checkpoint.error());
  const auto& manifest = checkpoint->manifest();
  Value value = summary(checkpoint->directory(), manifest);
  value.set("recipe_keys", manifest.recipe);
  Value::List tensors;
  for (const auto& view : checkpoint->weights()) {
    Value tensor;
    tensor.set("name", view.name);
    tensor.set("type", to_string(view.type));
    tensor.set("shape", to_string(view.shape));
    tensors.push_back(std::move(tensor));
  }
  value.set("tensors", std::move(tensors));
  if (flags.output == "json") {
    std::puts(to_json(value).c_str());
    return ExitCode::done;
  }
  std::printf("%s\nstep %lld, sample position %lld\nweights %s\nrecipe  %s\nmodel   %s\n",
              checkpoint->directory().c_str(), static_cast<long long>(manifest.step),
              static_cast<long long>(manifest.samples), to_string(manifest.weights_digest).c_str(),
              to_string(manifest.recipe_digest).c_str(), to_json(manifest.model).c_str());
  for (const auto& view : checkpoint->weights())
    std::printf("  %-48s %s %s\n", view.name.c_str(), std::string(to_string(view.type)).c_str(),
                to_string(view.shape).c_str());
  return ExitCode::done;
}

ExitCode verify(const FolderArguments& arguments, const CommonFlags&) {
  const auto files = storage::disk_files();
  const auto path = checkpoints_of(*files, arguments.path);
  if (!path) return invalid(path.error());
  auto listed = storage::list_checkpoints(*files, *path);
  std::vector<std::string> directories;
  const auto is_one = files->exists(*path + "/manifest.json");
  if (!is_one.ok()) return invalid(is_one.error());
  if (*is_one) {
    directories.push_back(*path);
  } else {
    if (!listed) return invalid(listed.error());
    for (const auto& checkpoint : *listed) directories.push_back(checkpoint.directory);
  }
  if (directories.empty())
    return invalid({arguments.path + ": there is no checkpoint in this folder"});
  ExitCode code = ExitCode::done;
  for (const auto& directory : directories) {
    const auto opened = storage::Checkpoint::open(*files, directory);
    if (opened) {
      std::printf("%s: all bytes match their digests\n", directory.c_str());
    } else {
      std::printf("%s: DAMAGED: %s\n", directory.c_str(), opened.error().text.c_str());
      code = ExitCode::failed;
    }
  }
  return code;
}

ExitCode prune(const PruneArguments& arguments, const CommonFlags&) {
  const auto files = storage::disk_files();
  const auto path = checkpoints_of(*files, arguments.path);
  if (!path) return invalid(path.error());
  const auto there = files->exists(*path);
  if (!there.ok()) return invalid(there.error());
  if (!*there) return ExitCode::done;
  RealEnv env;
  const auto lock = storage::lock_folder(*files, {env, read_host().process_text()}, *path, in_use);
  if (!lock) return invalid(lock.error());
  const auto pruned =
      storage::prune_checkpoints(*files, *path, {arguments.keep, arguments.keep_best});
  if (!pruned) return invalid(pruned.error());
  for (const auto& directory : pruned->removed) std::printf("removed %s\n", directory.c_str());
  for (const auto& bad : pruned->bad)
    std::printf("kept %s, although it is damaged: %s\n", bad.directory.c_str(), bad.why.c_str());
  return ExitCode::done;
}

/// Returns the numbers that `--dtype` names.
std::optional<storage::StoredType> exported_type(const std::string& name) {
  if (name == "bf16") return storage::StoredType::bf16;
  if (name == "fp16") return storage::StoredType::f16;
  if (name == "fp32") return storage::StoredType::f32;
  return {};
}

ExitCode export_one(const ExportArguments& arguments, const CommonFlags& flags) {
  const auto files = storage::disk_files();
  const auto checkpoint = open_checkpoint(*files, arguments.path);
  if (!checkpoint) return invalid(checkpoint.error());
  auto views = checkpoint->weights();
  if (arguments.ema) {
    const auto averages = averages_of(*checkpoint);
    if (!averages) return invalid(averages.error());
    for (auto& view : views)
      if (const auto average = averages->find(view.name); average != averages->end()) {
        const auto name = std::exchange(view, average->second).name;
        view.name = name;
      }
  }
  Value model = checkpoint->manifest().model;
  const bool is_adapted = has_lora(model);
  if (arguments.merge && !is_adapted)
    return invalid({"--merge: the model of " + checkpoint->directory() +
                    " has no low-rank additions (model.lora)"});
  MemoryPool memory;
  std::vector<Tensor> merged;
  if (arguments.merge) {
    auto made = merge_lora(views, model, memory);
    if (!made) return invalid(made.error());
    merged = std::move(*made);
    model = without_lora(std::move(model));
  }
  const bool is_adapter = is_adapted && !arguments.merge;
  // Exports each name with the prefix that it was imported with.
  if (const Value* prefix = checkpoint->manifest().state.find("prefix");
      prefix && prefix->text() && !is_adapter)
    for (auto& view : views) view.name = *prefix->text() + view.name;
  const auto taken = files->exists(arguments.to);
  if (!taken.ok()) return invalid(taken.error());
  if (*taken)
    return invalid({arguments.to + ": is there already; remove it, or give another name"});
  // Rejects a path in a folder of checkpoints, where a save would take the file for a leftover and
  // remove it.
  const auto folder = storage::parent_of(arguments.to);
  for (const auto& root : {folder, storage::parent_of(folder)}) {
    const auto is_root = files->exists(root + "/owner");
    if (!is_root.ok()) return invalid(is_root.error());
    if (*is_root)
      return invalid({arguments.to + ": " + root +
                      " is a folder in which a run keeps its checkpoints; wanted another place"});
  }
  const bool is_file = arguments.to.ends_with(".safetensors");
  if (is_file && !arguments.shard.empty())
    return invalid({"--shard: several files need a folder; found --to " + arguments.to +
                    ", wanted the name of a folder"});
  std::optional<std::int64_t> shard;
  if (!arguments.shard.empty()) {
    const auto bytes = parse_bytes(arguments.shard);
    if (!bytes) return invalid(within("--shard", bytes.error()));
    if (*bytes < 1) return invalid({"--shard: found " + arguments.shard + ", wanted 1B or more"});
    shard = *bytes;
  }
  const auto converted = convert(views, exported_type(arguments.dtype), memory);
  if (!converted) return invalid(converted.error());
  const auto tokenizer = tokenizer_of(*files, checkpoint->directory());
  if (!tokenizer) return invalid(tokenizer.error());
  const auto written =
      is_file ? write_file(*files, arguments.to, views, checkpoint->metadata())
      : is_adapter
          ? export_adapter(*files, arguments.to, views, model, checkpoint->metadata())
          : export_folder(*files, arguments.to,
                          {*checkpoint, model, views, run_folder_of(checkpoint->directory()),
                           *tokenizer, exported_type(arguments.dtype), shard});
  if (!written) return invalid(written.error());
  if (flags.quiet) return ExitCode::done;
  const auto additions =
      std::ranges::count_if(views, [](const auto& view) { return models::is_of_lora(view.name); });
  std::printf(
      "%s: %zu tensors, %s%s\n", arguments.to.c_str(),
      is_adapter && !is_file ? static_cast<std::size_t>(additions) : views.size(),
      memory_text(static_cast<double>(*written)).c_str(),
      is_file ? "; the weights alone: a folder also gets config.json and the tokenizer"
      : is_adapter
          ? "; the low-rank additions alone, as PEFT reads them: --merge adds them to the weights"
          : "");
  return ExitCode::done;
}

/// Returns the [model] of a configuration, or else of the config.json in the folder of the weights.
Result<Value> described_model(storage::Files& files, const ImportArguments& arguments,
                              const std::string& folder) {
  if (!arguments.config.empty()) {
    const auto loaded = config::load({arguments.config, {}});
    if (!loaded) return loaded.error();
    return loaded->config.model.table();
  }
  const std::string path = folder + "/config.json";
  const auto bytes = files.read(path);
  if (!bytes)
    return Error{"there is no config.json beside " + arguments.file +
                 " that says which model it is; give --config with a [model] section, or import a "
                 "folder that `troupe checkpoint export` wrote"};
  const auto config = parse_json(bytes->text());
  if (!config) return Error{path + ":" + config.error().text};
  auto given = config::model_of_hugging_face(config::model_kinds(), *config, arguments.accept);
  if (!given) return within(path, given.error());
  const auto kind = config::kind_of(*given);
  if (!kind)
    return Error{path + ": this program has no model of the kind \"" + text_in(*given, "kind") +
                 "\""};
  auto complete = models::complete(kind->options(), *given);
  if (!complete) return within(path, complete.error());
  return models::without_later(kind->options(), *std::move(complete));
}

/// Copies the tokenizer beside imported weights to where `sample` and `eval` look for the one of a
/// run, unless there is one.
Status import_tokenizer(storage::Files& files, const ImportArguments& arguments,
                        const std::string& folder) {
  const std::string from = folder + "/tokenizer.json";
  const std::string to = storage::parent_of(arguments.to) + "/tokenizer.json";
  if (storage::name_of(arguments.to) != "checkpoints") return Done{};
  const auto there = files.exists(from);
  if (!there.ok()) return there.error();
  const auto taken = files.exists(to);
  if (!taken.ok()) return taken.error();
  if (!*there || *taken) return Done{};
  const auto text = files.read(from);
  if (!text) return text.error();
  return storage::replace_file(files, to, text->text());
}

ExitCode import_one(const ImportArguments& arguments, const CommonFlags& flags) {
  const auto files = storage::disk_files();
  const auto file = storage::WeightFiles::open(*files, arguments.file);
  if (!file) return invalid(file.error());
  const auto description = described_model(*files, arguments, file->folder());
  if (!description) return invalid(description.error());
  const auto model = config::model_from(*description);
  if (!model) return invalid(model.error());
  MemoryPool memory;
  auto weights = read_weights(file->tensors(), *model, memory);
  if (!weights) return invalid(within(arguments.file, weights.error()));

  storage::CheckpointContent content;
  content.model = *description;
  content.recipe = Value(Value::Map{});
  content.state.set("prefix", weights->prefix);
  if (auto kept = keep_beside(*files, *file, arguments.config.empty()); !kept)
    return invalid(kept.error());
  else
    content.state.set(std::string(kept_beside), std::move(*kept));
  content.metadata = file->metadata();
  content.weights = std::move(weights->tensors);
  if (auto made = files->make_directory(arguments.to); !made) return invalid(made.error());
  RealEnv env;
  const auto lock =
      storage::lock_folder(*files, {env, read_host().process_text()}, arguments.to, in_use);
  if (!lock) return invalid(lock.error());
  const auto saved = storage::save_checkpoint(*files, arguments.to, content);
  if (!saved) return invalid(saved.error());
  if (auto copied = import_tokenizer(*files, arguments, file->folder()); !copied)
    return invalid(copied.error());
  for (const auto& name : weights->ignored)
    std::fprintf(stderr, "warning: skipped %s: it has no weights\n", name.c_str());
  if (!flags.quiet)
    std::printf("%s: %zu tensors, weights %s\n", saved->directory.c_str(), content.weights.size(),
                to_string(saved->manifest.weights_digest).c_str());
  return ExitCode::done;
}

CLI::Option* add_path(CLI::App* command, std::string& path) {
  return command
      ->add_option("path", path,
                   "a run's name or folder, a folder of checkpoints, or a checkpoint; RUN@best "
                   "is the one with the lowest validation loss")
      ->required();
}

}  // namespace

void add_checkpoint(Program& program) {
  CLI::App& group =
      add_group(program, "checkpoint", "list, verify, convert and remove checkpoints");
  auto listing = add_command(program, group, "ls", "list the checkpoints in a folder", ls);
  add_path(listing.app, listing.arguments.path);
  auto inspecting =
      add_command(program, group, "inspect", "show the contents of a checkpoint", inspect);
  add_path(inspecting.app, inspecting.arguments.path);
  auto verifying = add_command(program, group, "verify",
                               "verify every byte of a checkpoint against its digests", verify);
  add_path(verifying.app, verifying.arguments.path);
  auto pruning = add_command(program, group, "prune", "remove all but the newest good ones", prune);
  add_path(pruning.app, pruning.arguments.path);
  pruning.app
      ->add_option("--keep", pruning.arguments.keep, "number of checkpoints to keep (default: 3)")
      ->check(CLI::Range(1, 1'000'000));
  pruning.app
      ->add_option("--keep-best", pruning.arguments.keep_best,
                   "number of checkpoints with the lowest validation losses to keep besides those "
                   "(default: 0)")
      ->check(CLI::Range(0, 1'000'000));
  auto exporting = add_command(program, group, "export",
                               "export the weights, for other programs too", export_one);
  add_path(exporting.app, exporting.arguments.path);
  exporting.app
      ->add_option("--to", exporting.arguments.to,
                   "what to write: a folder for weights, config.json and tokenizer, or "
                   "a .safetensors file for the weights alone")
      ->required();
  exporting.app
      ->add_option("--dtype", exporting.arguments.dtype,
                   "round the weights to this type (default: as they are)")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  exporting.app->add_option("--shard", exporting.arguments.shard,
                            "divide the weights into files of at most this size, such as 5GB "
                            "(default: as they were imported, else one file)");
  exporting.app->add_flag("--ema", exporting.arguments.ema,
                          "export the average of the weights (train.ema)");
  exporting.app->add_flag("--merge", exporting.arguments.merge,
                          "add low-rank additions (model.lora) to the weights; without this a "
                          "folder gets the additions alone, as PEFT reads them");
  auto importing =
      add_command(program, group, "import", "make a checkpoint from exported weights", import_one);
  importing.app
      ->add_option("file", importing.arguments.file,
                   "a folder with model.safetensors or with its index and parts, or a .safetensors "
                   "file")
      ->required();
  importing.app->add_option("--to", importing.arguments.to, "the folder for the checkpoint")
      ->required();
  importing.app->add_option(
      "--config", importing.arguments.config,
      "a configuration with the [model] section (default: config.json beside the file)");
  importing.app
      ->add_option("--accept", importing.arguments.accept,
                   "keys of config.json that change no result, although this program does not know "
                   "them or wants other values; several with commas")
      ->delimiter(',')
      ->excludes("--config");
}

}  // namespace troupe::apps
