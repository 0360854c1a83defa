#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace troupe::tests {

struct Thread {
  pid_t id = -1;
  std::string name;
};

/// Returns the threads in the order of their start, the main thread first.
std::vector<Thread> threads_of(pid_t process);

/// Stops one thread of a descendant until this object is destroyed. It simulates a thread that
/// waits for a disk, a device or a terminal which never answers, so it stops the thread in a system
/// call. Elsewhere the thread could hold a lock, such as malloc's. All other threads continue.
class StoppedThread {
 public:
  enum class Has { stopped, ended, no_right };

  explicit StoppedThread(pid_t thread);
  ~StoppedThread();
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;

  Has has() const { return has_; }
  /// Must be called once the thread's process has been ended; only then can the process disappear.
  void see_end();

 private:
  pid_t thread_;
  Has has_ = Has::ended;
};

}  // namespace troupe::tests
