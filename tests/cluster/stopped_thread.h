#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace troupe::tests {

struct Thread {
  pid_t id = -1;
  std::string name;
};

/// In the order in which they began, the main one first.
std::vector<Thread> threads_of(pid_t process);

/// A thread of a descendant that stands still until this object ends, as one does that waits for a
/// disk, a device or a terminal which never answers; all others go on.
class StoppedThread {
 public:
  enum class Has { stopped, ended, no_right };

  explicit StoppedThread(pid_t thread);
  ~StoppedThread();
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;

  Has has() const { return has_; }
  /// Once its process has been ended: that is not over before this is called.
  void see_end();

 private:
  pid_t thread_;
  Has has_ = Has::ended;
};

}  // namespace troupe::tests
