// The other one of two processes with a GPU, for tests. Told by lines what to do:
//
//     begin EPOCH ADDRESS    it says where its words knock
//     play COUNT             it sends and looks at so many parcels, and says "played"
//     leave                  it lets go of everything, and says "left"

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

#include "side.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

void say(const std::string& line) { std::cout << line << std::endl; }

int fail(const std::string& why) {
  say("failed: " + why);
  return 1;
}

}  // namespace

int main() {
  auto gpu = LinkedGpu::open();
  if (!gpu) return fail(gpu.error().text);
  std::unique_ptr<Side> side;
  for (std::string order; std::cin >> order;) {
    if (order == "begin") {
      std::uint64_t epoch = 0;
      std::string address;
      std::cin >> epoch >> address;
      side = std::make_unique<Side>(1, **gpu, epoch);
      if (auto connected = side->connect(address); !connected) return fail(connected.error().text);
      say(side->address());
    } else if (order == "play") {
      std::uint64_t count = 0;
      std::cin >> count;
      if (auto formed = side->form(); !formed) return fail(formed.error().text);
      say("ready");
      const auto played =
          side->play(count, [&] { return side->sent() == count && side->looked() == count; });
      say(played ? "played" : "failed: " + played.error().text);
    } else if (order == "leave") {
      if (!side->leave()) return fail("its edges are stuck");
      side.reset();
      if ((*gpu)->pool->counters().bytes_in_use != 0) return fail("it holds memory yet");
      say("left");
    }
  }
  return 0;
}
