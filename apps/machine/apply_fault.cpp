#include "apps/machine/apply_fault.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace troupe::apps {
namespace {

/// Who stands still cannot wake up by itself: a child stops this process and lets it go on. It does
/// both, so that they come in that order.
void stand_still(std::chrono::nanoseconds time) {
  constexpr std::int64_t second = 1'000'000'000;
  const timespec pause{static_cast<time_t>(time.count() / second),
                       static_cast<long>(time.count() % second)};
  const pid_t process = getpid();
  const pid_t child = fork();
  if (child == 0) {
    // Of many threads only this one is left: system calls alone from here on. It must keep no
    // connection open where this process should die meanwhile, and then it has nobody to wake.
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
      return;  // Those are not done to a process.
  }
}

}  // namespace troupe::apps
