#pragma once

#include <memory>

#include "apps/program_context.h"
#include "apps/real/read_host.h"
#include "core/threads/real_env.h"
#include "transport/real_network.h"

namespace troupe::apps {

/// The real surroundings of a process: threads, network, disk, host, actors and executors. Main
/// functions make one.
class RealContext {
 public:
  ProgramContext get() { return {env_, network_, *files_, host_, systems_, executors_}; }

 private:
  RealEnv env_;
  transport::RealNetwork network_;
  const std::unique_ptr<storage::Files> files_ = storage::disk_files();
  const HostFacts host_ = read_host();
  actors::caf_shim::RealSystems systems_;
  actors::RealExecutors executors_;
};

}  // namespace troupe::apps
