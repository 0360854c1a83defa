#include "apps/node_processes.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace troupe::apps {
namespace {

constexpr int end_patience_ms = 5000;

/// Whether a process has ended within the patience.
bool ends(pid_t process, int patience_ms) {
  const int file = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  if (file < 0) return errno == ESRCH;
  pollfd ended{file, POLLIN, 0};
  const bool has_ended = poll(&ended, 1, patience_ms) > 0;
  close(file);
  return has_ended;
}

}  // namespace

NodeProcesses::~NodeProcesses() {
  for (const pid_t process : processes_) kill(process, SIGTERM);
  for (const pid_t process : processes_) {
    if (!ends(process, end_patience_ms)) kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
}

Status NodeProcesses::start(const std::string& head, const std::string& name, int cores,
                            const std::string& carrier) {
  const std::string cores_text = std::to_string(cores);
  const std::array<const char*, 12> words = {
      "troupe",    "node",          "--head",  head.c_str(),
      "--name",    name.c_str(),    "--cores", cores_text.c_str(),
      "--carrier", carrier.c_str(), "-q",      nullptr};
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return Error{"a node process cannot be started: " + std::string(strerror(errno))};
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);  // It has died meanwhile.
    // Ctrl-C is for the head, which ends the nodes when their runs are saved.
    setpgid(0, 0);
    execv("/proc/self/exe", const_cast<char* const*>(words.data()));
    _exit(127);
  }
  processes_.push_back(child);
  return Done{};
}

}  // namespace troupe::apps
