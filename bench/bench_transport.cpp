// Runs the measurement of `troupe bench transport` without the rest of the program:
//
//     ./dev bench transport [ROUNDS]

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "bench/transport_bench.h"

int main(int count, char** words) {
  const auto text =
      troupe::bench::measure_transport(count > 1 ? std::max(1, std::atoi(words[1])) : 9);
  std::fputs(text ? text->c_str() : text.error().text.c_str(), text ? stdout : stderr);
  return text ? 0 : 1;
}
