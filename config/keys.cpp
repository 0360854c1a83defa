#include "config/keys.h"

namespace troupe::config {

const std::vector<Section>& sections() {
  static const std::vector<Section> all = {
      {"", "Keys outside of all tables."},
      {"model", "The model."},
      {"model.lora",
       "Low-rank additions to projections (LoRA). They alone are trained. Without this table there "
       "are none."},
      {"model.loss",
       "The loss, where it differs from what the model's description says: the cross entropy "
       "alone."},
      {"data", "Training and validation data."},
      {"batch", "Batch sizes."},
      {"optimizer", "The optimizer."},
      {"optimizer.schedule", "Learning rate schedule."},
      {"precision", "Number formats of computation."},
      {"precision.loss_scale", "Dynamic loss scaling for fp16."},
      {"staleness", "How asynchronous schedules treat stale weights and delayed gradients."},
      {"pipeline",
       "Pipeline parallelism: how layers are assigned to devices, and in which order passes run."},
      {"parallel", "Data parallelism: how replicas reduce gradients."},
      {"elastic", "How the run reacts when nodes join and leave."},
      {"checkpoint", "Checkpoints: where and how often they are saved."},
      {"train", "Length of training, evaluation and compute devices."},
      {"sample", "Texts that a language model writes while it trains."},
      {"log", "Progress output."},
      {"limits", "Timeouts and failure limits. The defaults suit a cluster in one building."},
  };
  return all;
}

const std::vector<Preset>& presets() {
  using enum Preset::Recompute;
  static const std::vector<Preset> all = {
      {"stale", "none", "current", "none"},
      {"ws", "none", "forward", "none"},
      {"msnag", "msnag", "current", "none"},
      {"aggmsnag", "aggmsnag", "current", "none"},
      {"msnag_ws", "msnag", "forward", "none"},
      {"ws_ga", "none", "forward", "elementwise"},
      {"ga_jfl", "none", "current", "elementwise", needed},
      {"ws_msnag_ga", "msnag", "forward", "elementwise"},
      {"ws_msnag_ga_jfl", "msnag", "current", "elementwise", needed},
  };
  return all;
}

}  // namespace troupe::config
