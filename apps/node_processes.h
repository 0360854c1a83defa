#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/result.h"

namespace troupe::apps {

/// Node processes of this program on this machine. They end with this object, and with the thread
/// that started them, however it ends.
class NodeProcesses {
 public:
  NodeProcesses() = default;
  ~NodeProcesses();
  NodeProcesses(const NodeProcesses&) = delete;
  NodeProcesses& operator=(const NodeProcesses&) = delete;

  /// One more, with so many cores of its own.
  Status start(const std::string& head, const std::string& name, int cores,
               const std::string& carrier);

 private:
  std::vector<pid_t> processes_;
};

}  // namespace troupe::apps
