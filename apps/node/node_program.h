#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/chaos.h"
#include "actors/nodes/node.h"
#include "actors/pace.h"
#include "apps/exit_code.h"
#include "apps/node/node_arguments.h"
#include "apps/program_context.h"
#include "core/result.h"
#include "kernels/precision.h"
#include "transport/control/control_socket.h"

namespace troupe::apps {

struct NodeProgramOptions {
  NodeArguments arguments;
  transport::DialOptions dial;         // Dials the head, with the keys of the arguments.
  std::int64_t life = 0;               // The secret shared with the daemon; 0: none.
  std::optional<actors::Speed> speed;  // The processor's speed; unset: not measured.
  // Measures how many times as long a precision takes as fp32; null: not measured.
  double (*slowness)(kernels::Precision) = nullptr;
  std::function<void(const std::string&)> say;  // Prints a line for the user; any thread.
  /// Applies an injected fault to the process. `pace` slows its computing down.
  std::function<void(const actors::Chaos&, actors::Pace& pace)> apply_fault;
  /// Called when a device has failed or does not let go of memory. It must end the process and not
  /// return.
  std::function<void(const std::string& why)> stuck;
  /// Called once, on any thread, when the program has ended by itself or after leave(). `error` is
  /// what the user must know; it may be empty.
  std::function<void(ExitCode code, const std::string& error)> ended;
};

/// The process of a node: its actors, and the devices of the runs that play here. It waits for
/// nothing, and its caller may destroy it at any moment.
class NodeProgram {
 public:
  /// Everything in the context outlives the program.
  static Result<std::unique_ptr<NodeProgram>> start(const ProgramContext& program,
                                                    NodeProgramOptions options);
  /// Drops all that plays here.
  ~NodeProgram();
  NodeProgram(const NodeProgram&) = delete;
  NodeProgram& operator=(const NodeProgram&) = delete;

  /// Leaves once no run uses this node any more. Any thread may call it.
  void leave(const std::string& reason) { node_->leave(reason); }
  /// Sends the state of this machine's GPUs to the head, if connected. Any thread may call it.
  void tell(const actors::GpuReadings& readings) { node_->tell(readings); }
  /// Sends what is in use of this machine to the head, if connected. Any thread may call it.
  void tell(const actors::MachineLoad& load) { node_->tell(load); }

 private:
  NodeProgram(const ProgramContext& program, NodeProgramOptions options);
  actors::NodeOptions node_options();
  Result<std::shared_ptr<actors::RunHome>> open_run(const Value& config,
                                                    const actors::Placement& placement, int here);

  const ProgramContext program_;
  const NodeProgramOptions options_;
  const int cores_;
  actors::Pace pace_;  // Slows down jobs, which the actors wait for.
  const std::unique_ptr<actors::caf_shim::System> system_;
  std::unique_ptr<actors::Node> node_;  // Last: it uses the other members.
};

}  // namespace troupe::apps
