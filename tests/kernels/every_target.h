#pragma once

#include <functional>
#include <string>
#include <vector>

namespace troupe::test {

/// The instruction sets that this processor has and kernels are compiled for, the best first, and
/// the scalar code last.
std::vector<std::string> targets();

/// Calls body once for each of them, while kernels run on that one.
void on_every_target(const std::function<void(const std::string& target)>& body);

/// What the body gives is the same whatever the instruction set: compares it by ==.
template <class Body>
bool same_on_every_target(Body body) {
  const auto expected = body();
  bool same = true;
  on_every_target([&](const std::string&) { same = same && body() == expected; });
  return same;
}

}  // namespace troupe::test
