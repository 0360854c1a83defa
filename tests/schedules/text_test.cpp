#include "schedules/text.h"

#include "catch.h"
#include "core/random.h"
#include "golden.h"
#include "schedules/generators/registry.h"
#include "schedules/operators.h"
#include "shapes.h"

using namespace troupe;
using namespace troupe::schedules;

namespace {

std::string expanded(std::string_view text) {
  const auto lane = parse_lane(text);
  REQUIRE(lane.ok());
  return to_string(*lane);
}

std::string text_error(std::string_view text) {
  const auto schedule = parse_schedule(text);
  REQUIRE_FALSE(schedule.ok());
  return schedule.error().text;
}

std::string lane_error(std::string_view text) {
  const auto lane = parse_lane(text, {.stages = 4, .micro_batches = 8});
  REQUIRE_FALSE(lane.ok());
  return lane.error().text;
}

}  // namespace

TEST_CASE("every schedule reads back equal from its text", "[schedules]") {
  for_each_small_schedule(4, [](const Schedule& schedule) {
    const std::vector<bool> all(schedule.stages, true);
    for (const Schedule& form : {schedule, with_updates(schedule), split_backward(schedule),
                                 with_recompute(schedule, all)}) {
      const auto read = parse_schedule(to_text(form));
      REQUIRE(read.ok());
      CHECK(*read == form);
    }
  });
}

TEST_CASE("flags, numbers and an unusual cycle of routes are kept", "[schedules]") {
  const std::string text =
      "sched 1\n"
      "name mine(2)\n"
      "devices 2 stages 2 microbatches 3\n"
      "route 0: 0 1\n"
      "route 1: 1 0\n"
      "cycle: 0 0 1\n"
      "d0: 0G 0F0' 0F1 (1F2+0R0) 0I0 0W0~ 0A0 0O0 0A 0O 0U\n"
      "d1:\n";
  const auto schedule = parse_schedule(text);
  REQUIRE(schedule.ok());
  CHECK(schedule->route_of == std::vector<std::uint16_t>{0, 0, 1});
  CHECK(schedule->device(forward(0, 5)) == 1);
  CHECK(schedule->lanes[0][7] == give_after(0, 0));
  CHECK(schedule->lanes[0][9] == give(0));
  CHECK(to_text(*schedule) == text);
}

TEST_CASE("the parser skips comments, blank lines, tabs and carriage returns", "[schedules]") {
  const auto schedule = parse_schedule(
      "# mine\r\n\r\n  sched 1\r\nname x # of mine\n\ndevices 1 stages 1\tmicrobatches 1\n"
      "route 0 : 0\nd0 :\t0F0  0B0 # done\n\n# the end");
  REQUIRE(schedule.ok());
  CHECK(to_text(*schedule) ==
        "sched 1\nname x\ndevices 1 stages 1 microbatches 1\nroute 0: 0\nd0: 0F0 0B0\n");
}

TEST_CASE("the parser expands ranges and loops", "[schedules]") {
  CHECK(expanded("0F[0..3] 0B[3..0:-1]") == "0F0 0F1 0F2 0F3 0B3 0B2 0B1 0B0");
  CHECK(expanded("0F[0..6:2]") == "0F0 0F2 0F4 0F6");
  CHECK(expanded("0F0 {0F1 0B0}*3 0B3") == "0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3");
  CHECK(expanded("{(0F2+1B0) 0A0 0A}*2:2") == "(0F2+1B0) 0A0 0A (0F4+1B2) 0A2 0A");
  CHECK(expanded("{0F7}*3:-2") == "0F7 0F5 0F3");
  CHECK(expanded("{{0F0}*2 0B0}*2:10") == "0F0 0F1 0B0 0F10 0F11 0B10");
  CHECK(expanded("") == "");
}

TEST_CASE("a parse error says where it is, what was found and what was expected", "[schedules]") {
  CHECK(lane_error("0F0 0X1") == "1:6: found 'X1', expected one of F B I W R A O G U");
  CHECK(lane_error("0F0 0F") ==
        "1:7: found the end of the text, expected a micro-batch or '[' right after the code");
  CHECK(lane_error("0F0x") == "1:4: found 'x', expected a blank after the action");
  CHECK(lane_error("0F00B0") == "1:5: found 'B0', expected a blank after the action");
  CHECK(lane_error("0F0(1F0+0B0)") == "1:4: found '(', expected a blank after the action");
  CHECK(lane_error("4F0") == "1:1: found '4F0', expected a stage, from 0 to 3");
  CHECK(lane_error("0F8") == "1:3: found '8', expected a micro-batch, from 0 to 7");
  CHECK(lane_error("0F99999999999999999999").starts_with("1:3: found '99999999999999999999'"));
  CHECK(lane_error("0U3") == "1:3: found '3', expected no micro-batch after G or U");
  CHECK(lane_error("0F1~") == "1:4: found '~', expected '~' once, and after a W");
  CHECK(lane_error("0W1'") == "1:4: found ''', expected ''' once, and after an F");
  CHECK(lane_error("(0F1)") == "1:1: a group holds two actions or more, this one a single one");
  CHECK(lane_error("(0F1+0F[2..3])") == "1:1: a group holds single actions, no range");
  CHECK(lane_error("(0F1+0A)") == "1:1: a group holds passes: F B I W R");
  CHECK(lane_error("(0F1 0B0)") == "1:6: found '0B0', expected '+' or ')'");
  CHECK(lane_error("0F[3..0]") ==
        "1:3: this range holds nothing: from 3 one does not come to 0 in steps of 1");
  CHECK(lane_error("0F[0..3:0]").starts_with("1:3: this range holds nothing"));
  CHECK(lane_error("0F[0.3]") == "1:6: found '3', expected '..'");
  CHECK(lane_error("{}*2") == "1:1: a loop holds one action or more");
  CHECK(lane_error("{0F0 *2") == "1:6: found '*', expected an action such as 0F1, '(' or '{'");
  CHECK(lane_error("{0F0") ==
        "1:5: found the end of the text, expected an action such as 0F1, '(', '{' or '}'");
  CHECK(lane_error("{0F0}*0") == "1:7: found '0', expected a count, from 1 to 16777216");
  CHECK(lane_error("0F0 {0F4 0B0}*9") ==
        "1:5: round 4 of this loop comes to micro-batch 8; there are 8");
  CHECK(lane_error("0F0 }") == "1:5: found '}', expected an action such as 0F1, '(' or '{'");
  CHECK(lane_error("0F0\n0B0") == "1:4: found the end of the line, expected the end of the lane");
  CHECK(lane_error("0F0 \x01") ==
        "1:5: found the byte 1, expected an action such as 0F1, '(' or '{'");

  CHECK(text_error("") == "1:1: found the end of the text, expected 'sched'");
  CHECK(text_error("sched 2") == "1:7: found '2', expected the version, 1");
  CHECK(text_error("sched 1\nname a b\n") == "2:8: found 'b', expected the end of the line");
  const std::string head = "sched 1\nname x\ndevices 1 stages 2 microbatches 1\n";
  CHECK(text_error(head + "route 1: 0 0\n") == "4:7: found '1', expected the route's index, 0");
  CHECK(text_error(head + "route 0: 0\n") ==
        "4:11: found the end of the line, expected the device of stage 1, 0");
  CHECK(text_error(head + "route 0: 0 1\n") ==
        "4:12: found '1', expected the device of stage 1, 0");
  CHECK(text_error(head + "route 0: 0 0\ncycle: 1\n") == "5:8: found '1', expected a route, 0");
  CHECK(text_error(head + "route 0: 0 0\nd1: 0F0\n") == "5:1: found 'd1', expected 'd0'");
  CHECK(text_error(head + "route 0: 0 0\nd0: 0F0\nd1: 0F0\n") ==
        "6:1: found 'd1', expected the end of the schedule");
  CHECK(text_error("sched 1\nname x\ndevices 5000 stages 2 microbatches 1\n") ==
        "3:9: found '5000', expected the devices, from 1 to 4096");
}

TEST_CASE("a short text cannot expand to more actions than the limit", "[schedules]") {
  CHECK(parse_lane("{{{{0F0}*100:0}*100:0}*100:0}*100:0").error().text ==
        "1:1: here the schedule comes to more than 16777216 actions");
  CHECK(parse_lane("{{{{{{{{{0F0}*1}*1}*1}*1}*1}*1}*1}*1}*1").error().text ==
        "1:9: loops are nested deeper than 8");
}

TEST_CASE("mutated text parses to a schedule that reads back equal or to an error", "[schedules]") {
  std::string alphabet = "0123456789FBIWRAOGU()+[]{}*:.~'- \n#drs";
  int read = 0;
  for (std::uint32_t k = 0; k < 3000; ++k) {
    // A valid text with a few bytes changed.
    std::string text = golden_schedules()[k % 16].text;
    const RandomKey key{1, k, 0, 0};
    for (std::uint32_t change = 0; change < 1 + k % 3; ++change) {
      const auto words = key.words(change);
      text[words[0] % text.size()] = alphabet[words[1] % alphabet.size()];
    }
    const auto schedule = parse_schedule(text);
    if (!schedule) continue;
    ++read;
    CHECK(*parse_schedule(to_text(*schedule)) == *schedule);
  }
  CHECK(read > 100);
}

TEST_CASE("only equal schedules have equal digests", "[schedules]") {
  const Schedule a = *generate("1f1b", {4, 8, 1});
  Schedule b = *generate("1f1b", {4, 8, 1});
  CHECK(digest(a) == digest(b));
  std::swap(b.lanes[0][0], b.lanes[0][1]);
  CHECK_FALSE(digest(a) == digest(b));
}
