#pragma once

#include <string>
#include <vector>

namespace troupe::apps {

struct Point {
  double x = 0;
  double y = 0;
};

/// Points in ascending x. One that is no finite number is left out.
struct Curve {
  std::string name;
  std::vector<Point> points;
};

enum class Drawing {
  as_is,
  smoothed,  // A running mean, with the points themselves faint behind it.
};

struct LineChart {
  std::string title;
  std::string x;  // What the axes are.
  std::string y;
  std::vector<Curve> curves;
  Drawing drawing = Drawing::as_is;
};

struct BarChart {
  struct Series {
    std::string name;
    std::vector<double> values;  // One for each group; where there are fewer, the others are 0.
  };

  std::string title;
  std::string x;
  std::string y;
  std::vector<std::string> groups;
  std::vector<Series> series;
};

/// A picture that asks for nothing: axes with ticks at round numbers, the name of each curve where
/// it ends, colours that the colour-blind can tell too. Follows the viewer's choice of light or
/// dark. It can be a file, or stand in a page beside others.
std::string to_svg(const LineChart& chart);
std::string to_svg(const BarChart& chart);

/// Round numbers, 1, 2 or 5 times a power of ten apart, in [low, high]: about `wanted` of them.
std::vector<double> ticks(double low, double high, int wanted);

/// The mean of each point and those around it, a sixtieth of the curve to each side. A point that
/// is no finite number counts nowhere.
Curve smoothed(const Curve& curve);

/// A curve of no more than about four points for each of so many columns: in each the first, the
/// least, the greatest and the last.
Curve thinned(const Curve& curve, int columns);

}  // namespace troupe::apps
