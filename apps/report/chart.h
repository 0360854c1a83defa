#pragma once

#include <string>
#include <vector>

namespace troupe::apps {

struct Point {
  double x = 0;
  double y = 0;
};

/// Points in ascending x. A point with a value that is not finite is skipped.
struct Curve {
  std::string name;
  std::vector<Point> points;
};

enum class Drawing {
  as_is,
  smoothed,  // A running mean, with the points faint behind it.
};

struct LineChart {
  std::string title;
  std::string x;  // The label of the axis.
  std::string y;
  std::vector<Curve> curves;
  Drawing drawing = Drawing::as_is;
};

/// Draws a self-contained SVG: axes with ticks at round numbers, the name of each curve at its end,
/// and colours that colour-blind readers can distinguish. It follows the viewer's light or dark
/// mode. It works as a file and inside a page with other charts.
std::string to_svg(const LineChart& chart);

/// Returns about `wanted` round numbers in [low, high], spaced by 1, 2 or 5 times a power of ten.
std::vector<double> ticks(double low, double high, int wanted);

/// Returns the running mean over a sixtieth of the curve to each side. Skips points that are not
/// finite.
Curve smoothed(const Curve& curve);

/// Returns a curve of at most about four points for each of `columns` columns: the first, the
/// smallest, the largest and the last.
Curve thinned(const Curve& curve, int columns);

}  // namespace troupe::apps
