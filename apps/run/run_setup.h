#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/unit_times.h"
#include "config/load.h"
#include "core/result.h"
#include "kernels/linear.h"
#include "models/model.h"
#include "storage/data/data_identity.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// The opened data of a configuration, and the model that fits it.
struct RunSetup {
  storage::Files* files = nullptr;  // The file system of the data. It outlives the setup.
  std::shared_ptr<const storage::Dataset> train;
  std::shared_ptr<const storage::Dataset> validate;  // Null if the configuration names none.
  std::vector<storage::DataFile> train_files;        // The files that the data was read from.
  std::vector<std::int64_t> mix_counts;              // The samples of each source of a mixture.
  std::vector<storage::DataFile> validate_files;
  models::Model model;
  std::string tokenizer;    // The path of the tokenizer of the training data; empty: none.
  Value model_description;  // The `kind` and all options, as checkpoints hold them.
  std::int64_t micro = 1;
  kernels::Precision precision = kernels::Precision::fp32;
  /// The times of the units on a nominal device, as they were measured; empty: their work foretells
  /// them.
  std::vector<UnitTimes> times;

  bool of_tokens() const { return model.sample.input_type == DType::i32; }
  /// Counts the numbers that the model learns.
  std::int64_t parameters() const;
};

/// Returns an error if the configuration is valid, but asks for what this version cannot do.
Status check_support(const config::RunConfig& config);

/// Opens what a configuration names. Errors name the key and what was found; they mean exit code 3.
/// Every command that trains or plans calls this, so that all reject the same configurations.
/// `files` outlives the setup.
Result<RunSetup> set_up(storage::Files& files, const config::RunConfig& config);

/// Returns the path of a data spec's tokenizer, or an empty one if it has none: the one that it
/// names, or the one that `troupe data prepare` wrote beside its shards.
Result<std::string> tokenizer_for(storage::Files& files, const std::string& data);

/// Returns the training data of a configuration: its name, or the names of a mixture's sources.
Result<std::vector<std::string>> training_data(const config::RunConfig::Data& data);

/// Returns an error if the model cannot write the samples that the configuration asks for. What
/// leads a run calls it: nodes need no tokenizer.
Status check_samples(const config::RunConfig& config, const RunSetup& setup);

/// Returns the meaning of "auto" for the cores of this machine.
kernels::Precision best_precision_here();
/// Returns the configured precision as this machine resolves it.
Result<kernels::Precision> precision_of(const config::RunConfig& config);
/// Returns whether all devices of the configuration's plans are GPUs.
bool is_on_gpus(const config::RunConfig& config);

/// Returns what a model needs of its data, but for the number of its classes.
storage::DataNeeds needs_of(const models::Model& model);

/// Checks that the model can use the samples of this data; `key` begins the error.
Status fits(const std::string& key, const storage::Dataset& data, const models::Model& model);

}  // namespace troupe::apps
