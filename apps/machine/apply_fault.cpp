#include "apps/machine/apply_fault.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace troupe::apps {
namespace {

/// Stops this process for `time`. A stopped process cannot wake itself, so a forked child sends
/// both SIGSTOP and SIGCONT, in that order.
void stand_still(std::chrono::nanoseconds time) {
  constexpr std::int64_t second = 1'000'000'000;
  const timespec pause{static_cast<time_t>(time.count() / second),
                       static_cast<long>(time.count() % second)};
  const pid_t process = getpid();
  const pid_t child = fork();
  if (child == 0) {
    // The child has only this thread, so it may make only system calls. It closes all descriptors,
    // so that no connection stays open if the parent dies, and then exits by PR_SET_PDEATHSIG.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close_range(0, ~0U, 0);
    if (getppid() != process) _exit(1);
    kill(process, SIGSTOP);
    nanosleep(&pause, nullptr);
    kill(process, SIGCONT);
    _exit(0);
  }
  if (child > 0) waitpid(child, nullptr, 0);
}

}  // namespace

void apply_fault(const actors::Chaos& chaos, actors::Pace& pace) {
  using What = actors::Chaos::What;
  switch (chaos.what) {
    case What::kill:
      raise(SIGKILL);
      return;
    case What::stop:
      return stand_still(chaos.time());
    case What::slow:
      return pace.slow_down(chaos.times, chaos.time());
    case What::partition:
    case What::disk_full:
      return;  // These faults do not apply to a process.
  }
}

}  // namespace troupe::apps
