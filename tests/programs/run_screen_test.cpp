// The page of one run on a terminal.

#include "apps/client/run_screen.h"

#include <string>

#include "catch.h"

namespace troupe::apps {
namespace {

Value step(std::int64_t number, double loss) {
  Value event;
  event.set("type", "step");
  event.set("step", number);
  event.set("loss", loss);
  event.set("rate", 31887.4);
  event.set("tokens", 2048);
  return event;
}

Value running(std::int64_t step) {
  Value run;
  run.set("name", "own");
  run.set("state", "running");
  run.set("step", step);
  run.set("steps", 400);
  return run;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a sparkline has a block for each number or for the mean of several", "[apps]") {
  CHECK(sparkline({}, 10).empty());
  CHECK(sparkline({1, 8}, 10) == "▁█");
  CHECK(sparkline({1, 2, 3, 4, 5, 6, 7, 8}, 8) == "▁▂▃▄▅▆▇█");
  CHECK(sparkline({0, 2, 10, 12}, 2) == "▁█");
  CHECK(sparkline({3, 3, 3}, 3) == "▁▁▁");
}

TEST_CASE("the page of a run shows progress, loss, stages and the newest events first", "[apps]") {
  RunScreen history;
  for (int i = 1; i <= 4; ++i) history.add(step(i, 4.0 / i));
  Value warning;
  warning.set("type", "warn");
  warning.set("text", "the disk is nearly full");
  history.add(warning);
  Value saved;
  saved.set("type", "checkpoint.saved");
  saved.set("step", 4);
  saved.set("directory", "runs/own/checkpoints/step-000000000004");
  history.add(saved);
  Value run = running(4);
  run.set("loss", 1.0);
  run.set("where", "stage 0 on alpha, 1 on beta");
  const std::string page = history.page(run, 2, {80});
  INFO(page);
  CHECK(page.starts_with("own: running, step 4 of 400, 1 %, 2 steps/s, 3 min 18 s left\n"));
  CHECK(has(page, "\nloss 1.0000, 31,887 tokens/s\n"));
  CHECK(has(page, "\nloss from step 1 on, between 1.0000 and 4.0000\n█▃▂▁\n"));
  CHECK(has(page, "\nstage 0 on alpha, 1 on beta\n"));
  CHECK(page.find("saved runs/own") < page.find("warning: the disk is nearly full"));
}

TEST_CASE("the page of a run shows how much each device computed in the last steps", "[apps]") {
  RunScreen screen;
  for (int i = 1; i <= 70; ++i) {
    Value one = step(i, 1);
    one.set("busy", Value::List{100, i <= 68 ? 50 : 0});
    screen.add(one);
  }
  const std::string page = screen.page(running(70), 2, {30});
  INFO(page);
  CHECK(has(page, "\n  device 0    100 %  ██████████\n  device 1      0 %  ▅▅▅▅▅▅▅▅▁▁\n"));
  // Another plan has other devices.
  Value of_three = step(71, 1);
  of_three.set("busy", Value::List{75, 80, 100});
  screen.add(of_three);
  CHECK(has(screen.page(running(71), 2, {80}),
            "\n  device 0     75 %  ▆\n  device 1     80 %  ▇\n  device 2    100 %  █\n"));
  Value of_many = step(72, 1);
  of_many.set("busy", Value::List(20, Value(100)));
  screen.add(of_many);
  CHECK(has(screen.page(running(72), 2, {80}), "device 15   100 %  █\n  and 4 more\n"));
}

TEST_CASE("what does not fit in a row of the page begins another one", "[apps]") {
  RunScreen history;
  Value run = running(4);
  run.set("loss", 1.0);
  run.set("where", "alpha: device 0; beta: device 1");
  CHECK(history.page(run, 2, {36}) ==
        "own: running, step 4 of 400, 1 %,\n  2 steps/s, 3 min 18 s left\nloss 1.0000\n\n"
        "alpha: device 0; beta: device 1\n");
  CHECK(has(history.page(run, 2, {20}), "\nalpha: device 0;\n  beta: device 1\n"));
  // A name that is too long stays whole here: the screen cuts its line.
  CHECK(history.page(run, 0, {8}).starts_with("own: running,\n  step 4 of 400,\n  1 %\n"));
}

TEST_CASE("the page of a long run shows its whole loss", "[apps]") {
  RunScreen history;
  for (int i = 1; i <= 100'000; ++i) history.add(step(i, i <= 50'000 ? 4.0 : 1.0));
  const std::string page = history.page(running(100'000), 0, {4});
  INFO(page);
  CHECK(has(page, "\nloss from step 1 on, between 1.0000 and 4.0000\n██▁▁\n"));
}

TEST_CASE("repeated steps replace the earlier ones, and an unknown speed shows no time", "[apps]") {
  RunScreen history;
  for (const int i : {1, 2, 3, 2, 3}) history.add(step(i, i == 1 ? 9.0 : 1.0));
  const std::string page = history.page(running(3), 0, {80});
  INFO(page);
  CHECK(has(page, "\n█▁▁\n"));
  CHECK_FALSE(has(page, "left"));
}

}  // namespace
}  // namespace troupe::apps
