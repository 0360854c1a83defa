#pragma once

#include <functional>
#include <string>
#include <vector>

namespace troupe::test {

/// Returns the instruction sets of this processor for which kernels are compiled, best first, with
/// the scalar code last.
std::vector<std::string> targets();

/// Returns the name of the instruction set that kernels run on.
std::string current_target();

/// Calls body once for each instruction set, with kernels running on it.
void on_every_target(const std::function<void(const std::string& target)>& body);

/// Returns whether body() gives equal results (by ==) on every instruction set.
template <class Body>
bool same_on_every_target(Body body) {
  const auto expected = body();
  bool same = true;
  on_every_target([&](const std::string&) { same = same && body() == expected; });
  return same;
}

}  // namespace troupe::test
