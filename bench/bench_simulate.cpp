// Measures how many actions per second the simulator plays on one core. Prints a line per schedule.

#include <cstdio>
#include <ctime>

#include "schedules/generators/registry.h"
#include "schedules/simulate/simulator.h"

using namespace troupe::schedules;

namespace {

struct Shape {
  const char* name;
  int devices;
  int chunks;
  int micro_batches;
};

int measure(const Shape& shape) {
  const auto schedule = generate(shape.name, {.stages = shape.devices * shape.chunks,
                                              .micro_batches = shape.micro_batches,
                                              .chunks = shape.chunks});
  if (!schedule) {
    std::fprintf(stderr, "%s\n", schedule.error().text.c_str());
    return 1;
  }
  auto simulator = Simulator::make(*schedule, uniform_costs(shape.devices, shape.chunks, {}));
  if (!simulator) {
    std::fprintf(stderr, "%s\n", simulator.error().text.c_str());
    return 1;
  }
  double actions = 0;
  for (const auto& lane : schedule->lanes) actions += static_cast<double>(lane.size());

  // Processor time, so that other programs on the machine do not count.
  const auto begin = std::clock();
  auto now = begin;
  double played = 0, makespan = 0;
  for (; now - begin < CLOCKS_PER_SEC / 2; now = std::clock()) {
    makespan = simulator->makespan(schedule->lanes).value_or(0);
    played += actions;
  }
  const double seconds = static_cast<double>(now - begin) / CLOCKS_PER_SEC;
  std::printf("%-12s %3d devices %4d micro-batches  makespan %8.2f  %6.1f million actions/s\n",
              shape.name, shape.devices, shape.micro_batches, makespan, played / seconds / 1e6);
  return 0;
}

}  // namespace

int main() {
  int failed = 0;
  for (const Shape& shape :
       {Shape{"1f1b", 8, 1, 32}, Shape{"zb-h1", 8, 1, 32}, Shape{"zb-v", 8, 2, 32},
        Shape{"interleaved", 8, 4, 32}, Shape{"chimera", 8, 1, 32}, Shape{"1f1b", 64, 1, 512},
        Shape{"zb-v", 64, 2, 512}, Shape{"interleaved", 64, 4, 512}})
    failed += measure(shape);
  return failed;
}
