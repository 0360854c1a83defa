#include "tests/kernels/every_target.h"

#include "catch.h"
#include "kernels/cpu/parts/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/kernels/every_target.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::test::HWY_NAMESPACE {

std::string chosen() { return hwy::TargetName(HWY_TARGET); }

}  // namespace troupe::test::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::test {

HWY_EXPORT(chosen);

std::string current_target() { return HWY_DYNAMIC_DISPATCH(chosen)(); }

std::vector<std::string> targets() {
  std::vector<std::string> names;
  on_every_target([&](const std::string& target) { names.push_back(target); });
  return names;
}

void on_every_target(const std::function<void(const std::string& target)>& body) {
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    body(HWY_DYNAMIC_DISPATCH(chosen)());
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST_CASE("kernels run on the instruction set that a test selects", "[kernels]") {
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    CHECK(HWY_DYNAMIC_DISPATCH(chosen)() == hwy::TargetName(target));
  }
  hwy::SetSupportedTargetsForTest(0);
}

#if defined(__aarch64__)
TEST_CASE("kernels on arm64 run on NEON", "[kernels]") {
  CHECK(targets().front().starts_with("NEON"));
}
#endif

}  // namespace troupe::test

#endif
