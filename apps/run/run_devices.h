#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/executors.h"
#include "actors/pace.h"
#include "actors/play/linked_device.h"
#include "apps/run/device_notes.h"
#include "apps/run/prepared_plan.h"
#include "config/run_config.h"
#include "core/memory/device_progress.h"
#include "core/result.h"
#include "kernels/linear.h"

namespace troupe::apps {

/// The devices of a run that are in this process, and the cores that they share. Devices are
/// numbered over all replicas, one replica after another.
struct DevicesHere {
  actors::Executors& executors;
  std::function<bool(int device)> are_here = [](int) { return true; };
  int cores = 1;  // The cores that they share if the configuration does not say.
  const actors::Pace* pace = nullptr;  // Slows computing down for drills; outlives the run.
  bool want_links = false;             // Open links from GPUs here to GPUs of other processes.
  // Measures how many times as long products take in a precision as in fp32. Null: the machine is
  // not measured, and nothing warns of a slow precision.
  double (*slowness)(kernels::Precision) = nullptr;
  // The GPU of the first device here; later devices take the following GPUs in turn.
  int first_gpu = 0;
};

/// The devices of a run that are in this process, and a thread on which its loaders read. Before
/// they are destroyed, the owner must wait for their work (actors::finish).
class RunDevices {
 public:
  RunDevices() = default;
  /// Opens as many devices as the plan has. Each gets an equal share of the cores, or the next GPU.
  static Result<RunDevices> open(const config::RunConfig& config, kernels::Precision precision,
                                 const PreparedPlan& prepared_plan, const DevicesHere& here);

  /// Returns the devices by number; null for devices in other processes.
  const std::vector<std::unique_ptr<actors::Executor>>& by_number() const { return devices_; }
  actors::Executor* reader() const { return reader_.get(); }
  /// Returns all devices here and the reader.
  std::vector<actors::Executor*> all() const;

  /// Returns the links of devices by number, null for a device without. `why_not_linked` says why
  /// devices lack links that they want.
  std::vector<actors::LinkedDevice*> linked() const;
  const std::string& why_not_linked() const { return why_not_linked_; }
  /// Notes on what devices compute more slowly than expected, and why.
  DeviceNotes& device_notes() const { return *device_notes_; }

 private:
  /// The position of a device among those here that take GPUs in turn.
  struct Turn {
    int number = 0;
    std::vector<int> gpus;  // The GPUs in use.
    int devices = 0;        // The devices here.
  };
  Status add_gpu(const Turn& turn, const config::RunConfig& config, kernels::Precision precision,
                 const DevicesHere& here);

  std::shared_ptr<DeviceProgress> gpus_ = std::make_shared<DeviceProgress>();
  std::vector<std::unique_ptr<actors::Executor>> devices_;
  std::vector<std::unique_ptr<actors::LinkedDevice>> linked_;  // Indexed by device number too.
  std::string why_not_linked_;
  std::shared_ptr<DeviceNotes> device_notes_ = std::make_shared<DeviceNotes>();
  std::unique_ptr<actors::Executor> reader_;
};

}  // namespace troupe::apps
