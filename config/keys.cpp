#include "config/keys.h"

namespace troupe::config {

const std::vector<Section>& sections() {
  static const std::vector<Section> all = {
      {"", "Keys that stand above all tables."},
      {"model", "What is trained."},
      {"data", "What it is trained on."},
      {"batch", "How samples make a step."},
      {"optimizer", "How a step changes the weights."},
      {"optimizer.schedule", "The learning rate as a function of the step."},
      {"precision", "In which types numbers are computed."},
      {"precision.loss_scale", "What keeps small gradients from vanishing in fp16."},
      {"staleness", "Which weights a pass sees in an asynchronous schedule."},
      {"pipeline", "How the layers lie on devices, and in which order they compute."},
      {"parallel", "How replicas share their work."},
      {"elastic", "What happens when nodes come and go."},
      {"checkpoint", "What is saved, where and how often."},
      {"train", "How long, and what is done on the way."},
      {"log", "What a run prints."},
      {"limits", "Every wait; the defaults fit a cluster in one building."},
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
