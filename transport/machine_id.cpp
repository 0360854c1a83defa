#include "transport/machine_id.h"

#include <unistd.h>

#include <fstream>

namespace troupe::transport {

std::string this_machine_id() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char host[256] = {};
  (void)gethostname(host, sizeof host - 1);
  return std::string(host) + "/" + boot;
}

}  // namespace troupe::transport
