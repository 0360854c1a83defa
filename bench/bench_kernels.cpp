#include <cstdlib>
#include <iostream>

#include "bench/kernel_bench.h"
#include "bench/peers/other_product.h"
#include "kernels/instructions.h"

/// Prints a table of kernel speeds on this machine: bench_kernels [THREADS [ROUNDS]]
int main(int count, char** arguments) {
  const int threads = count > 1 ? std::atoi(arguments[1]) : 1;
  const int rounds = count > 2 ? std::atoi(arguments[2]) : 9;
  if (threads < 1 || rounds < 1) {
    std::cerr << "usage: bench_kernels [THREADS [ROUNDS]]\n";
    return 2;
  }
  if (const auto obeyed = troupe::kernels::obey_instructions_variable(); !obeyed) {
    std::cerr << "error: " << obeyed.error().text << "\n";
    return 3;
  }
  std::cout << troupe::bench::to_table(
      troupe::bench::measure_kernels(threads, rounds, troupe::bench::other_product(threads)));
}
