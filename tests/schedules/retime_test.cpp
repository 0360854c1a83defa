#include "schedules/generators/retime.h"

#include "catch.h"
#include "schedules/check/check.h"
#include "schedules/generators/registry.h"
#include "schedules/operators.h"
#include "schedules/text.h"
#include "shapes.h"

using namespace troupe;
using namespace troupe::schedules;

namespace {

RetimeSettings settings_for(const Schedule& schedule, double cap) {
  RetimeSettings settings;
  settings.stages.resize(schedule.stages);
  settings.caps.assign(schedule.lanes.size(), cap);
  return settings;
}

}  // namespace

TEST_CASE("retiming fills gaps with W and orders ready passes by preference", "[schedules]") {
  const Schedule base = split_backward(*generate("1f1b", {2, 3, 1}));
  RetimeSettings settings = settings_for(base, 2);
  const auto backward_first = retime(base, settings);
  REQUIRE(backward_first);
  CHECK(to_string(backward_first->lanes[0]) == "0F0 0F1 0I0 0W0 0I1 0F2 0W1 0I2 0W2");
  CHECK(to_string(backward_first->lanes[1]) == "1F0 1I0 1F1 1I1 1W0 1W1 1F2 1I2 1W2");
  settings.preference = Preference::forward_first;
  const auto forward_first = retime(base, settings);
  REQUIRE(forward_first);
  CHECK(to_string(forward_first->lanes[0]) == "0F0 0F1 0I0 0I1 0W0 0F2 0W1 0I2 0W2");
  CHECK(to_string(forward_first->lanes[1]) == "1F0 1F1 1I0 1I1 1W0 1W1 1F2 1I2 1W2");
}

TEST_CASE("retiming with the memory of its base always finds a schedule", "[schedules]") {
  for_each_small_schedule(4, [](const Schedule& schedule) {
    const Schedule base = split_backward(passes_only(schedule));
    RetimeSettings settings = settings_for(base, 0);
    settings.caps = peak_stash(base, settings);
    settings.hop = 0.3;
    for (const Preference preference :
         {Preference::backward_first, Preference::forward_first, Preference::as_listed})
      for (const double patience : {0.0, 0.5, 1.0}) {
        settings.preference = preference;
        settings.patience = patience;
        const auto retimed = retime(base, settings);
        INFO(to_text(base));
        REQUIRE(retimed);
        const auto violations = check(*retimed);
        if (!violations.empty()) FAIL(render(*retimed, violations.front()));
        const auto peaks = peak_stash(*retimed, settings);
        for (std::size_t d = 0; d < peaks.size(); ++d) CHECK(peaks[d] <= settings.caps[d]);
      }
  });
}

TEST_CASE("retiming finds no schedule if the memory is too small for any order", "[schedules]") {
  const Schedule base = *generate("gpipe", {3, 4, 1});
  CHECK_FALSE(retime(base, settings_for(base, 0.5)));
}

TEST_CASE("patience delays a W if another pass is about to be ready", "[schedules]") {
  const Schedule base = split_backward(*generate("1f1b", {2, 2, 1}));
  RetimeSettings settings = settings_for(base, 2);
  settings.hop = 0.25;
  // I of micro-batch 1 can start on device 0 a quarter after I of micro-batch 0 ends ...
  CHECK(to_string(retime(base, settings)->lanes[0]) == "0F0 0F1 0I0 0W0 0I1 0W1");
  settings.stages[1].forward = 0.2;
  settings.patience = 1;
  // ... and W would take four times that.
  CHECK(to_string(retime(base, settings)->lanes[0]) == "0F0 0F1 0I0 0I1 0W0 0W1");
}
