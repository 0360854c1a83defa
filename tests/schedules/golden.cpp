#include "golden.h"

#include <fstream>
#include <sstream>

namespace troupe::schedules {

std::vector<Golden> golden_schedules() {
  std::ifstream file(TROUPE_TEST_DATA "/data/golden.txt");
  std::vector<Golden> all;
  Golden golden;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("# ")) {
      std::istringstream words(line);
      std::string skipped;
      words >> skipped >> skipped >> skipped >> golden.makespan >> skipped;
      for (double peak; words >> peak;) golden.peaks.push_back(peak);
      all.push_back(std::move(golden));
      golden = {};
    } else if (!line.empty()) {
      golden.text += line + '\n';
    }
  }
  return all;
}

}  // namespace troupe::schedules
