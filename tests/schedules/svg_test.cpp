#include "schedules/formats/svg.h"

#include "catch.h"
#include "schedules/operators.h"
#include "tables.h"

using namespace troupe;
using namespace troupe::schedules;

namespace {

std::string draw(const Schedule& schedule, const Costs& costs) {
  const auto simulation = play(schedule, costs);
  return to_svg(timeline_of(schedule, costs, simulation), summary(simulation));
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Returns whether XML tags nest properly and all are closed.
bool well_formed(const std::string& text) {
  std::vector<std::string> open;
  for (std::size_t at = text.find('<'); at != text.npos; at = text.find('<', at + 1)) {
    const auto end = text.find('>', at);
    if (end == text.npos) return false;
    const auto tag = text.substr(at + 1, end - at - 1);
    if (tag.find('<') != tag.npos) return false;
    const auto name = tag.substr(0, tag.find(' '));
    if (tag.back() == '/') continue;
    if (tag[0] != '/') {
      open.push_back(name);
    } else if (open.empty() || "/" + open.back() != name) {
      return false;
    } else {
      open.pop_back();
    }
  }
  return open.empty();
}

}  // namespace

TEST_CASE("a picture has a row for each device and a box for each pass", "[schedules]") {
  const auto schedule = with_updates(make("zb-h1", 3, 5));
  const auto svg = draw(schedule, unit_costs(schedule));
  CHECK(well_formed(svg));
  CHECK(count(svg, "class=\"row\"") == 3);
  CHECK(count(svg, "class=\"pass F0\"") == 15);
  CHECK(count(svg, "class=\"pass I0\"") == 15);
  CHECK(count(svg, "class=\"pass W0\"") == 15);
  CHECK(count(svg, "class=\"mark\"") == 3 + 1);  // One more in the legend.
  CHECK(count(svg, "prefers-color-scheme:dark") == 1);
  CHECK(svg.find("makespan 17, bubble 11.8 % of one step") != svg.npos);
}

TEST_CASE("a picture tells the stages of a device apart by shade", "[schedules]") {
  const auto schedule = make("zb-v", 2, 4);
  const auto svg = draw(schedule, unit_costs(schedule));
  CHECK(count(svg, "class=\"pass F0\"") == 8);
  CHECK(count(svg, "class=\"pass F1\"") == 8);
  CHECK(svg.find(".F0{fill:rgb(0,114,178)}") != svg.npos);
  CHECK(svg.find(".F1{fill:rgb(61,148,196)}") != svg.npos);
}

TEST_CASE("passes that overlap share the height of a row", "[schedules]") {
  const auto schedule = read(
      "sched 1\nname group\ndevices 1 stages 1 microbatches 2\nroute 0: 0\n"
      "d0: 0F0 (0F1+0B0) 0B1\n");
  const auto svg = draw(schedule, unit_costs(schedule));
  CHECK(count(svg, "height=\"13\"") == 2);
}

TEST_CASE("special characters in a name or title are escaped in a picture", "[schedules]") {
  Timeline timeline;
  timeline.name = "<script>\"&\x01\xff";
  timeline.devices = 1;
  timeline.spans = {{0, Track::compute, forward(0, 0), 0, 1}};
  const auto svg = to_svg(timeline, "a < b");
  CHECK(well_formed(svg));
  CHECK(count(svg, "&lt;script&gt;&quot;&amp;\uFFFD\uFFFD") == 2);
  CHECK(svg.find("a &lt; b") != svg.npos);
}

TEST_CASE("an empty timeline draws a valid picture", "[schedules]") {
  CHECK(well_formed(to_svg({}, "")));
}
