#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "config/load.h"
#include "core/result.h"
#include "kernels/linear.h"
#include "models/model.h"
#include "storage/data/data_identity.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// What a configuration names, found and opened: the data, and the model that fits it.
struct RunSetup {
  std::unique_ptr<storage::Files> files;
  std::shared_ptr<const storage::Dataset> train;
  std::shared_ptr<const storage::Dataset> validate;  // Null if the configuration names none.
  std::vector<storage::DataFile> train_files;        // What they were read from.
  std::vector<storage::DataFile> validate_files;
  models::Model model;
  Value
      model_description;  // `kind` and all options: what a checkpoint says it holds the weights of.
  std::int64_t micro = 1;
  kernels::Precision precision = kernels::Precision::fp32;

  std::int64_t targets_per_sample() const { return model.sample.target.count(); }
  bool of_tokens() const { return model.sample.input_type == DType::i32; }
};

/// Errors name the key and what it found; they mean exit code 3. Every command that trains or plans
/// asks here, so that all refuse the same configurations.
Result<RunSetup> set_up(const config::RunConfig& config);

/// What "auto" means on the cores of this machine alone.
kernels::Precision best_precision_here();
/// What a configuration names, as this machine understands it.
Result<kernels::Precision> precision_of(const config::RunConfig& config);
/// Whether all devices of its plans are GPUs.
bool is_on_gpus(const config::RunConfig& config);

/// Whether a model can take the samples of this data; `key` begins the error.
Status fits(const std::string& key, const storage::Dataset& data, const models::Model& model);

/// The model of a description, as a checkpoint carries it.
Result<models::Model> model_from(const Value& description);

}  // namespace troupe::apps
