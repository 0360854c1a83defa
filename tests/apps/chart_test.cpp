#include "apps/report/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "catch.h"

using namespace troupe::apps;

namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

/// The axis extends 4 % of the range beyond both ends.
constexpr const char* whole_diagonal = "d=\"M58 281.19L590 60.81\"";

LineChart one(const std::vector<Point>& points) {
  return {.title = "t", .x = "step", .y = {}, .curves = {{"c", points}}};
}

}  // namespace

TEST_CASE("ticks are 1, 2 or 5 times a power of ten apart and lie in the range", "[apps]") {
  CHECK(ticks(0, 10, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(ticks(1.5, 4.25, 6) == std::vector<double>{1.5, 2, 2.5, 3, 3.5, 4});
  CHECK(ticks(-1, 1, 4) == std::vector<double>{-1, -0.5, 0, 0.5, 1});
  CHECK(ticks(1, 600, 6) == std::vector<double>{100, 200, 300, 400, 500, 600});
  for (const double high : {1e-9, 3e-4, 7.0, 1234.5, 8e17, 1e290}) {
    const auto found = ticks(0, high, 6);
    INFO(high);
    CHECK(found.size() >= 4);
    CHECK(found.size() <= 10);
    CHECK(found.back() <= high * (1 + 1e-9));
  }
}

TEST_CASE("a range without extent has no ticks", "[apps]") {
  CHECK(ticks(1, 1, 6).empty());
  CHECK(ticks(2, 1, 6).empty());
  CHECK(ticks(no_number, 1, 6).empty());
  CHECK(ticks(0, infinity, 6).empty());
  CHECK(ticks(1e300, std::nextafter(1e300, infinity), 6).empty());
}

TEST_CASE("a curve spans its axis from one end to the other", "[apps]") {
  CHECK(contains(to_svg(one({{0, 0}, {10, 5}})), whole_diagonal));
  CHECK(contains(to_svg(one({{1000, -3}, {3000, 7}})), whole_diagonal));
}

TEST_CASE("a constant curve lies in the middle", "[apps]") {
  for (const double value : {0.0, 3.0, -2e-8, 1e200}) {
    INFO(value);
    CHECK(contains(to_svg(one({{1, value}, {2, value}})), "d=\"M58 171L590 171\""));
  }
}

TEST_CASE("a chart skips values that are not finite", "[apps]") {
  const auto good = to_svg(one({{0, 0}, {10, 5}}));
  CHECK(to_svg(one(
            {{0, 0}, {3, no_number}, {4, infinity}, {5, -infinity}, {no_number, 1}, {10, 5}})) ==
        good);
  CHECK_FALSE(contains(good, "nan"));
  const Curve mean = smoothed({"c", {{0, 1}, {1, no_number}, {2, 3}}});
  REQUIRE(mean.points.size() == 2);
  CHECK(mean.points[1].y == 3);
}

TEST_CASE("a chart without points says that, and a single point is drawn as a dot", "[apps]") {
  CHECK(contains(to_svg(one({})), "no data"));
  CHECK(contains(to_svg(one({{1, no_number}})), "no data"));
  CHECK(contains(to_svg(LineChart{}), "no data"));
  CHECK(contains(to_svg(one({{1, 2}})), "<circle cx=\"324\""));
}

TEST_CASE("a curve that ends early ends with a dot, and no line leads from it to its name",
          "[apps]") {
  LineChart chart = one({{0, 0}, {100, 100}});
  chart.curves.push_back({"short", {{0, 10}, {3, 20}}});
  const auto svg = to_svg(chart);
  CHECK(contains(svg, "<circle "));
  // Both names have a line of their colour beside them. The one of the long curve begins at its
  // end, 2 pixels right of the frame; the other one begins beside its name.
  CHECK(contains(svg, "class=\"lead\" stroke=\"#0072b2\" d=\"M592 "));
  CHECK(contains(svg, "class=\"lead\" stroke=\"#d55e00\" d=\"M602 "));
}

TEST_CASE("a few very large values do not flatten the rest of a chart", "[apps]") {
  LineChart chart = one({});
  for (int i = 0; i < 100; ++i) chart.curves[0].points.push_back({double(i), double(i % 2)});
  chart.curves[0].points[0].y = 1e9;
  const auto svg = to_svg(chart);
  CHECK(contains(svg, ">0.5</text>"));
  CHECK_FALSE(contains(svg, "G</text>"));
}

TEST_CASE("a curve leaves the frame where it crosses the edge, and the chart says how far it goes",
          "[apps]") {
  // Falls from 12 to 0 within the first of 100 steps and stays at 0 or 1: the axis ends far below
  // 12.
  LineChart chart = one({{0, 12}, {1, 12}, {2, 0}});
  for (int i = 3; i < 100; ++i) chart.curves[0].points.push_back({double(i), double(i % 2)});
  const auto svg = to_svg(chart);
  const auto path = svg.substr(svg.find("class=\"curve\""));
  const auto begin = path.find("d=\"M") + 4;
  // The first thing drawn is the crossing between steps 1 and 2: no flat line from step 0 on.
  const double x = std::stod(path.substr(begin));
  const double at_1 = 58 + 532.0 / 99, at_2 = 58 + 2 * 532.0 / 99;
  CHECK(x > at_1);
  CHECK(x < at_2);
  CHECK(path.substr(path.find(' ', begin) + 1, 3) == "52L");
  CHECK(contains(svg, ">cut off above: up to 12</text>"));
  CHECK_FALSE(contains(to_svg(one({{0, 0}, {10, 5}})), "cut off"));
}

TEST_CASE("a running mean does not change a straight line", "[apps]") {
  Curve line{"c", {}};
  for (int i = 0; i < 600; ++i) line.points.push_back({double(i), 2.0 * i});
  const Curve mean = smoothed(line);
  for (int i = 0; i < 600; ++i) CHECK(mean.points[i].y == Approx(2.0 * i));
}

TEST_CASE("a thinned curve keeps its peaks and ends", "[apps]") {
  Curve curve{"c", {}};
  for (int i = 0; i < 100000; ++i) curve.points.push_back({double(i), 0});
  curve.points[777].y = 5;
  curve.points[888].y = -5;
  const Curve thin = thinned(curve, 100);
  CHECK(thin.points.size() <= 400);
  CHECK(thin.points.front().x == 0);
  CHECK(thin.points.back().x == 99999);
  CHECK(std::ranges::count(thin.points, 5, &Point::y) == 1);
  CHECK(std::ranges::count(thin.points, -5, &Point::y) == 1);
}

TEST_CASE("the name of a curve never becomes markup", "[apps]") {
  LineChart chart = one({{0, 0}, {1, 1}});
  chart.title = "</title><script>alert(1)</script>";
  chart.curves[0].name = "\"><img src=x onerror=y>\x01\xff";
  chart.x = chart.y = "<x>";
  const auto svg = to_svg(chart);
  CHECK_FALSE(contains(svg, "<script"));
  CHECK_FALSE(contains(svg, "<img"));
  CHECK_FALSE(contains(svg, "<x>"));
  CHECK_FALSE(contains(svg, "\x01"));
  CHECK_FALSE(contains(svg, "\xff"));
}
