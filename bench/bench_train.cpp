// Runs the measurement of `troupe bench train`:
//
//     ./dev bench train [ROUNDS]

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "bench/train_bench.h"

int main(int count, char** words) {
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const int rounds = count > 1 ? std::max(1, std::atoi(words[1])) : 3;
  for (const auto& model : troupe::bench::train_bench_models())
    std::puts(troupe::bench::measure_train(here / "../apps/troupe", model, rounds,
                                           troupe::bench::Beside::torch)
                  .c_str());
}
