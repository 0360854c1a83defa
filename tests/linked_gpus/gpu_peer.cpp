// The second of two processes with a GPU. It reads orders from its input, one per line:
//
//     open HERE EPOCH        become side HERE of two; prints the address for edge words
//     connect ADDRESS        connect to the other side; prints "connected"
//     form                   wait for the edges; prints "ready"
//     play COUNT             send and check COUNT parcels; prints "played"
//     leave                  release everything; prints "left"
//
// On an error it prints "failed: " and the reason.

#include <signal.h>
#include <sys/prctl.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

#include "side.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

void say(const std::string& line) { std::cout << line << std::endl; }

void say(const Status& how, const std::string& line) {
  say(how ? line : "failed: " + how.error().text);
}

}  // namespace

int main() {
  // Ends this process with its parent, even if a driver hangs.
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto gpu = LinkedGpu::open();
  if (!gpu) return say(gpu.error(), ""), 1;
  std::unique_ptr<Side> side;
  for (std::string order; std::cin >> order;) {
    if (order == "open") {
      int here = 0;
      std::uint64_t epoch = 0;
      std::cin >> here >> epoch;
      side = std::make_unique<Side>(here, **gpu, epoch);
      say(side->address());
    } else if (order == "connect") {
      std::string address;
      std::cin >> address;
      say(side->connect(address), "connected");
    } else if (order == "form") {
      say(side->form(), "ready");
    } else if (order == "play") {
      std::uint64_t count = 0;
      std::cin >> count;
      say(side->play(count, [&] { return side->has_played(count); }), "played");
    } else if (order == "leave") {
      if (!side->leave()) return say(Error{"its edges are stuck"}, ""), 1;
      side.reset();
      if ((*gpu)->pool->counters().bytes_in_use != 0)
        return say(Error{"it holds memory yet"}, ""), 1;
      say("left");
    }
  }
  return 0;
}
