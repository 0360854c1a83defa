#include "apps/events/step_text.h"

#include <string>

#include "apps/events/number_text.h"
#include "catch.h"

using namespace troupe;

namespace {

/// Returns an event of a run with 1,000 tokens in a step.
Value step(std::int64_t number, double time, double seconds) {
  Value event;
  event.set("type", "step");
  event.set("step", number);
  event.set("loss", 1.357);
  event.set("grad_norm", 0.618);
  event.set("lr", 0.00263);
  event.set("samples", number * 10);
  event.set("tokens", number * 1000);
  event.set("seconds", seconds);
  event.set("time", time);
  return event;
}

}  // namespace

TEST_CASE("a step has its total, its share, a rate and the time left", "[apps]") {
  apps::StepText text(400);
  for (int i = 1; i <= 188; ++i) text.add(step(i, 100 + 0.25 * i, 0.25));
  Value last = step(189, 147.25, 0.25);
  last.set("memory", 11.1 * 1048576);
  text.add(last);
  CHECK(text.line() ==
        "step 189 of 400   47 %  loss 1.3570  4,000 tokens/s  53 s left  grad norm 0.618  lr "
        "0.00263  11.1 MiB");
}

TEST_CASE("the parts of a step that matter least go first", "[apps]") {
  apps::StepText text(400);
  for (int i = 1; i <= 189; ++i) text.add(step(i, 100 + 0.25 * i, 0.25));
  CHECK(text.line(79) ==
        "step 189 of 400   47 %  loss 1.3570  4,000 tokens/s  53 s left  grad norm 0.618");
  CHECK(text.line(78) == "step 189 of 400   47 %  loss 1.3570  4,000 tokens/s  53 s left");
  CHECK(text.line(40) == "step 189 of 400   47 %  loss 1.3570");
  for (std::size_t columns = 0; columns < 100; ++columns)
    CHECK(text.line(columns).size() <= columns);
}

TEST_CASE("what is not known of a step is absent", "[apps]") {
  apps::StepText text(0);
  text.add(step(409, 100, 0.000001));
  CHECK(text.line() == "step 409  loss 1.3570  grad norm 0.618  lr 0.00263");
  apps::StepText ended(400);
  for (int i = 390; i <= 400; ++i) ended.add(step(i, i, 1));
  CHECK(ended.line().find("left") == std::string::npos);
  apps::StepText beyond(400);
  for (int i = 390; i <= 410; ++i) beyond.add(step(i, i, 1));
  CHECK(beyond.line().starts_with("step 410  loss"));
}

TEST_CASE("steps that are told at once have the rate of all of them", "[apps]") {
  apps::StepText text(400);
  // Four steps take a second. They are noticed together.
  for (int i = 0; i < 40; ++i) text.add(step(i + 1, 100 + i / 4, i % 4 == 0 ? 1.0 : 0.000001));
  CHECK(text.line().find("  4,000 tokens/s  ") != std::string::npos);
}

TEST_CASE("a pause and a step back count neither as rate nor as time left", "[apps]") {
  apps::StepText text(100);
  for (int i = 1; i <= 50; ++i) text.add(step(i, i, 1));
  CHECK(text.line().find("  1,000 tokens/s  50 s left  ") != std::string::npos);
  text.stand_still();
  text.add(step(51, 10'000, 0.000001));
  CHECK(text.line() == "step 51 of 100    51 %  loss 1.3570  grad norm 0.618  lr 0.00263");
  for (int i = 40; i <= 50; ++i) text.add(step(i, 10'000 + i, 1));
  CHECK(text.line().find("  1,000 tokens/s  50 s left  ") != std::string::npos);
}

TEST_CASE("numbers are written as people write them", "[apps]") {
  CHECK(apps::count_text(108'288) == "108,288");
  CHECK(apps::count_text(124'439'808) == "124.4 million");
  CHECK(apps::count_text(7.24e9) == "7.2 billion");
  CHECK(apps::memory_text(11.1 * 1048576) == "11.1 MiB");
  CHECK(apps::memory_text(1.5 * 1073741824) == "1.5 GiB");
  CHECK(apps::duration(16.2) == "16 s");
  CHECK(apps::duration(200) == "3 min 20 s");
  CHECK(apps::duration(7500) == "2 h 5 min");
}
