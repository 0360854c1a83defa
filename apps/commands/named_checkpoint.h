#pragma once

#include <memory>
#include <optional>
#include <string>

#include "apps/samples/trained_model.h"
#include "config/run_config.h"
#include "core/result.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// Returns the folder that a person means by a checkpoint's own folder, by a folder of checkpoints,
/// by the folder of a run, or by the name of a run below runs/. In the last two cases that is the
/// run's folder of checkpoints. Each of them with "@best" means the best checkpoint there.
Result<std::string> checkpoints_of(storage::Files& files, const std::string& what);

/// Opens a checkpoint. `path` is what checkpoints_of() understands. Of several checkpoints the
/// newest good one is opened.
Result<storage::Checkpoint> open_checkpoint(storage::Files& files, const std::string& path);

/// Returns the folder of the run with this checkpoint: of runs/NAME/checkpoints/step-000000001000,
/// runs/NAME.
std::string run_folder_of(const std::string& checkpoint);

/// Returns the path of the tokenizer that the run of a checkpoint has left in its folder; empty if
/// there is none.
Result<std::string> tokenizer_of(storage::Files& files, const std::string& checkpoint);

/// Returns the configuration that the run of a checkpoint has left in its folder; nothing if there
/// is none.
Result<std::optional<config::RunConfig>> config_of(storage::Files& files,
                                                   const std::string& checkpoint);

/// The precision of products: fp32, or that of the training if this machine's processor is made for
/// it.
enum class Products { fp32, as_trained };

/// Opens the model of a checkpoint that open_checkpoint() finds.
Result<std::unique_ptr<TrainedModel>> open_model(storage::Files& files, const std::string& path,
                                                 int threads, Products products = Products::fp32,
                                                 WhichWeights which = WhichWeights::newest,
                                                 ModelUse use = ModelUse::as_trained);

}  // namespace troupe::apps
