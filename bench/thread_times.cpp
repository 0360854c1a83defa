#include "bench/thread_times.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace troupe::bench {
namespace {

namespace fs = std::filesystem;

/// A thread's stat file has its name in brackets, eleven words, and then its user and system time
/// in ticks.
constexpr int words_before_times = 11;

}  // namespace

std::map<std::string, double> thread_times(pid_t process) {
  std::map<std::string, double> times;
  std::error_code gone;
  const fs::path tasks = "/proc/" + std::to_string(process) + "/task";
  const auto ticks_in_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  for (const auto& task : fs::directory_iterator(tasks, gone)) {
    std::string line;
    std::getline(std::ifstream(task.path() / "stat"), line);
    const auto open = line.find('('), close = line.rfind(')');
    if (open == std::string::npos || close == std::string::npos) continue;
    std::istringstream words(line.substr(close + 1));
    std::string word;
    for (int i = 0; i < words_before_times; ++i) words >> word;
    double user = 0, system = 0;
    if (words >> user >> system)
      times[line.substr(open + 1, close - open - 1)] += (user + system) / ticks_in_second;
  }
  return times;
}

}  // namespace troupe::bench
