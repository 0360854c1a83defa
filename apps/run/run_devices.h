#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/executor.h"
#include "actors/pace.h"
#include "actors/play/linked_device.h"
#include "apps/run/device_notes.h"
#include "apps/run/prepared_plan.h"
#include "config/run_config.h"
#include "core/memory/device_progress.h"
#include "core/result.h"
#include "kernels/linear.h"

namespace troupe::apps {

/// Which devices of a run are in this process, of all replicas one after another, and how many
/// cores they share.
struct DevicesHere {
  std::function<bool(int device)> are_here = [](int) { return true; };
  std::optional<int> cores;            // Nothing: all that the configuration or the machine gives.
  const actors::Pace* pace = nullptr;  // Of their computing; outlives the run.
  bool want_links = false;             // Of GPUs, with those of other processes.
  int first_gpu = 0;                   // Where taking turns begins, of all GPUs here.
};

/// The devices of a run that are in this process, and a thread for its loaders to read on. Whoever
/// has given them work waits until it is done (actors::finish) before they go.
class RunDevices {
 public:
  RunDevices() = default;
  /// As many as its plan has, each a share of the cores, or a GPU in turn.
  static Result<RunDevices> open(const config::RunConfig& config, kernels::Precision precision,
                                 const PreparedPlan& prepared_plan, const DevicesHere& here);

  /// By device; null for those that are elsewhere.
  const std::vector<std::unique_ptr<actors::Executor>>& by_number() const { return devices_; }
  actors::Executor* reader() const { return reader_.get(); }
  /// All that are here, and the reader.
  std::vector<actors::Executor*> all() const;

  /// By device those of them that have links; and why others that want some have none.
  std::vector<actors::LinkedDevice*> linked() const;
  const std::string& why_not_linked() const { return why_not_linked_; }
  /// What GPUs among them compute more slowly than one may expect, and why.
  DeviceNotes& device_notes() const { return *device_notes_; }

 private:
  /// Of the devices that are here, which take turns with GPUs.
  struct Turn {
    int number = 0;
    std::vector<int> gpus;  // Those that are taken.
  };
  Status add_gpu(const Turn& turn, const config::RunConfig& config, const DevicesHere& here);

  std::shared_ptr<DeviceProgress> gpus_ = std::make_shared<DeviceProgress>();
  std::vector<std::unique_ptr<actors::Executor>> devices_;
  std::vector<std::unique_ptr<actors::LinkedDevice>> linked_;  // Likewise.
  std::string why_not_linked_;
  std::shared_ptr<DeviceNotes> device_notes_ = std::make_shared<DeviceNotes>();
  std::unique_ptr<actors::Executor> reader_;
};

}  // namespace troupe::apps
