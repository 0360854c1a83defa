// Measures what nodes cost a head: the time until all have joined, the time of `troupe status`, and
// the head's memory for each node.
//
//     ./dev bench head [ROUNDS]

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/child.h"
#include "bench/crowd.h"
#include "bench/figures.h"
#include "storage/files/temporary_folder.h"

namespace troupe::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// A head process, terminated by the destructor.
class Head {
 public:
  Head(const std::string& program, const std::string& folder)
      : address_file_(folder + "/troupe/head") {
    id_ = fork();
    if (id_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      setenv("XDG_STATE_HOME", folder.c_str(), 1);
      execl(program.c_str(), program.c_str(), "head", "-q", "--listen", "127.0.0.1:0", "--events",
            "127.0.0.1:0", nullptr);
      _exit(127);
    }
  }
  ~Head() {
    kill(id_, SIGTERM);
    waitpid(id_, nullptr, 0);
  }
  Head(const Head&) = delete;
  Head& operator=(const Head&) = delete;

  /// Waits for the head's address. Returns nothing if the head does not start.
  std::string endpoint() const {
    const auto begin = Clock::now();
    while (seconds_since(begin) < 20 && waitpid(id_, nullptr, WNOHANG) == 0) {
      std::ifstream file(address_file_);
      if (std::string line; std::getline(file, line) && !line.empty()) return line;
      usleep(1000);
    }
    return {};
  }

  double memory_mib() const {
    std::ifstream file("/proc/" + std::to_string(id_) + "/statm");
    double pages = 0, resident = 0;
    file >> pages >> resident;
    return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
  }

 private:
  std::string address_file_;
  pid_t id_;
};

bool measure(int nodes, int rounds, const std::string& program) {
  std::vector<double> joined, asked, memory;
  for (int round = 0; round < rounds; ++round) {
    const auto folder = storage::TemporaryFolder::make();
    if (!folder) return std::fprintf(stderr, "error: %s\n", folder.error().text.c_str()), false;
    fs::current_path(folder->path());
    {
      const Head head(program, folder->path());
      const auto endpoint = head.endpoint();
      if (endpoint.empty()) return std::fputs("error: the head does not come up\n", stderr), false;
      const double before = head.memory_mib();
      const auto begin = Clock::now();
      const auto crowd = Crowd::gather(endpoint, nodes, std::chrono::seconds(60));
      if (!crowd) return std::fprintf(stderr, "error: %s\n", crowd.error().text.c_str()), false;
      joined.push_back(seconds_since(begin));
      memory.push_back((head.memory_mib() - before) * 1024 / nodes);
      for (int i = 0; i < 5; ++i) {
        const auto start = Clock::now();
        const auto status = run_child({{program, "status", "--head", endpoint}, {}, 2});
        if (!status || status->exit_status != 0) return false;
        asked.push_back(seconds_since(start));
      }
    }
    fs::current_path("/");
  }
  std::printf(
      "%5d nodes: all joined in %.2f s; troupe status %.0f ms; %.0f KiB of the head's memory "
      "each\n",
      nodes, median(joined), median(asked) * 1e3, median(memory));
  return true;
}

int run(int rounds) {
  const std::string program = fs::read_symlink("/proc/self/exe").parent_path() / "../apps/troupe";
  for (const int nodes : {10, 50, 200})
    if (!measure(nodes, rounds, program)) return 1;
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int count, char** words) {
  return troupe::bench::run(count > 1 ? std::max(1, std::atoi(words[1])) : 3);
}
