#include "apps/report/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>

#include "core/json.h"
#include "core/text.h"

namespace troupe::apps {
namespace {

// Values beyond this are not drawn: differences between them would overflow.
constexpr double largest = 1e300;

bool is_drawable(Point point) {
  return std::abs(point.x) <= largest && std::abs(point.y) <= largest;  // False for NaN.
}

// The palette of Okabe and Ito without its yellow, which is invisible on white.
constexpr std::array<std::string_view, 7> colours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                     "#e69f00", "#56b4e9", "#888888"};
// After the last colour the colours repeat, dashed.
constexpr std::array<std::string_view, 3> dashes = {"", "6 3", "2 3"};

std::string colour_of(std::size_t curve) { return std::string(colours[curve % colours.size()]); }

/// Formats a length in pixels with two decimals.
std::string px(double length) { return shortest(std::round(length * 100) / 100); }

/// Formats a tick: "0.05", "12k", "3M".
std::string tick_text(double value, double distance) {
  constexpr std::array<std::pair<double, std::string_view>, 3> units = {
      {{1e9, "G"}, {1e6, "M"}, {1e4, "k"}}};
  // Removes the rounding error of repeated addition.
  if (std::abs(value) < distance / 1000) return "0";
  for (const auto& [from, name] : units)
    if (std::abs(value) >= from && std::abs(value) < 1e13) {
      const double unit = from == 1e4 ? 1e3 : from;
      return shortest(std::round(value / unit * 1000) / 1000) + std::string(name);
    }
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

/// A mapping from values of one axis to positions on the page.
struct Axis {
  double low = 0, high = 1;   // The values.
  double begin = 0, end = 1;  // The page.
  double at(double value) const {
    return begin + (std::clamp(value, low, high) - low) / (high - low) * (end - begin);
  }
};

/// Returns an axis; widens a range that is a single point.
Axis axis_of(double low, double high) {
  if (!(low <= high)) return {0, 1};
  if (high - low <= std::max(std::abs(low), std::abs(high)) * 1e-9) {
    const double half = low == 0 ? 0.5 : std::abs(low) * 0.05;
    return {low - half, high + half};
  }
  return {low, high};
}

Axis widened(Axis axis) {
  const double margin = (axis.high - axis.low) * 0.04;
  return {axis.low - margin, axis.high + margin};
}

/// Returns an axis from the smallest to the largest value. If a few values lie far above the rest
/// (the first steps, a diverged run), it cuts them off, so that the rest stays readable.
Axis axis_for(std::vector<double> values) {
  if (values.empty()) return {0, 1};
  std::ranges::sort(values);
  const double low = values.front();
  const double usual = values[(values.size() - 1) * 95 / 100];
  const double reach = low + 3 * (usual - low);
  return axis_of(low, usual > low ? std::min(values.back(), reach) : values.back());
}

class Drawer {
 public:
  Drawer(const std::string& title, std::string_view x, std::string_view y)
      : x_name_(x), y_name_(y) {
    text_ =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" width=\"" + px(width) +
        "\" height=\"" + px(height) + "\" viewBox=\"0 0 " + px(width) + " " + px(height) +
        "\" role=\"img\">\n<title>" + escaped(title) +
        "</title>\n"
        "<style>\n"
        ".chart text{font:11px system-ui,sans-serif;fill:#222}\n"
        ".chart .sheet{fill:#fff}.chart .grid{stroke:#8886;stroke-width:.6}\n"
        ".chart .frame{stroke:#888;fill:none}.chart .curve{fill:none;stroke-width:1.8;"
        "stroke-linejoin:round}\n"
        ".chart .raw{fill:none;stroke-width:.7;opacity:.3}.chart .lead{fill:none;stroke-width:.8}\n"
        ".chart .head{font-size:14px;font-weight:600}\n"
        ".chart .mid{text-anchor:middle}.chart .far{text-anchor:end}\n"
        "@media(prefers-color-scheme:dark){.chart text{fill:#ddd}.chart .sheet{fill:#16181c}}\n"
        "</style>\n<rect class=\"sheet\" width=\"100%\" height=\"100%\"/>\n";
    words("head", 12, 22, escaped(title));
  }

  void add_frame(Axis x, Axis y) {
    x_ = x;
    y_ = y;
    x_.begin = left, x_.end = right;
    y_.begin = bottom, y_.end = top;
    const auto marks = ticks(y.low, y.high, 6);
    for (const double mark : marks) {
      line("grid", left, y_.at(mark), right, y_.at(mark));
      words("far", left - 7, y_.at(mark) + 4, tick_text(mark, y.high - y.low));
    }
    line("frame", left, bottom, right, bottom);
    words("mid", (left + right) / 2, bottom + 34, escaped(x_name_));
    if (!y_name_.empty()) words("", left - 40, top - 10, escaped(y_name_));
  }

  void add_x_ticks() {
    for (const double mark : ticks(x_.low, x_.high, 8)) {
      line("frame", x_.at(mark), bottom, x_.at(mark), bottom + 4);
      words("mid", x_.at(mark), bottom + 17, tick_text(mark, x_.high - x_.low));
    }
  }

  void add_curve(std::string_view style, std::size_t number, const Curve& curve) {
    std::vector<Point> points;
    std::ranges::copy_if(curve.points, std::back_inserter(points), is_drawable);
    if (points.size() == 1)  // A curve of one point is drawn as a dot.
      return add_dot(number, x_.at(points[0].x), y_.at(points[0].y));
    const std::string path = path_inside(points);
    if (path.empty()) return;
    text_ += "<path class=\"" + std::string(style) + "\" stroke=\"" + colour_of(number) + "\"" +
             dash_of(number) + " d=\"" + path + "\"/>\n";
  }

  void add_dot(std::size_t number, double x, double y) {
    text_ += "<circle cx=\"" + px(x) + "\" cy=\"" + px(y) + "\" r=\"2.5\" fill=\"" +
             colour_of(number) + "\"/>\n";
  }

  /// Writes the names of curves at their ends, moved apart if they would overlap.
  void add_names(const std::vector<Curve>& curves) {
    struct Name {
      std::size_t number;
      Point end;
      double at;
    };
    std::vector<Name> names;
    for (std::size_t number = 0; number < curves.size(); ++number) {
      const auto& points = curves[number].points;
      const auto last = std::find_if(points.rbegin(), points.rend(), is_drawable);
      if (last != points.rend()) names.push_back({number, *last, y_.at(last->y)});
    }
    std::ranges::stable_sort(names, {}, &Name::at);
    const double apart =
        std::min(14.0, (bottom - top) / std::max<double>(1, static_cast<double>(names.size())));
    double above = top - apart;
    for (auto& name : names) above = name.at = std::max(name.at, above + apart);
    double below = bottom + apart;
    for (auto name = names.rbegin(); name != names.rend(); ++name)
      below = name->at = std::min(name->at, below - apart);
    for (const auto& name : names) {
      const double x = x_.at(name.end.x), y = y_.at(name.end.y);
      // A line from a curve that ends early would look like more of the curve: its end is a dot.
      const bool ends_early = x < right - 12;
      const std::string from =
          ends_early ? "M" + px(right + 12) + " " + px(name.at)
                     : "M" + px(x + 2) + " " + px(y) + "L" + px(right + 12) + " " + px(name.at);
      if (ends_early) add_dot(name.number, x, y);
      text_ += "<path class=\"lead\" stroke=\"" + colour_of(name.number) + "\"" +
               dash_of(name.number) + " d=\"" + from + "h8\"/>\n";
      words("", right + 24, name.at + 4, escaped(curves[name.number].name, longest_name));
    }
  }

  /// `safe` must be escaped already.
  void words(std::string_view style, double x, double y, const std::string& safe) {
    text_ += "<text" + (style.empty() ? "" : " class=\"" + std::string(style) + "\"") + " x=\"" +
             px(x) + "\" y=\"" + px(y) + "\">" + safe + "</text>\n";
  }

  std::string finish() && { return std::move(text_) + "</svg>\n"; }

  static constexpr double width = 760, height = 340;
  static constexpr double left = 58, right = 590, top = 52, bottom = 290;
  static constexpr std::size_t longest_name = 22;

  /// Says how far values go that lie above the frame.
  void add_cut(double highest) {
    if (highest <= y_.high) return;
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", highest);
    words("far", right - 4, top + 12, "cut off above: up to " + std::string(text));
  }

 private:
  std::string place(Point point) const { return px(x_.at(point.x)) + " " + px(y_.at(point.y)); }

  /// Returns the path of a curve. Parts above or below the frame are left out, so that the curve
  /// leaves the frame where it crosses its edge.
  std::string path_inside(const std::vector<Point>& points) const {
    std::string path;
    bool pen_is_there = false;  // At the point before this one.
    for (std::size_t i = 1; i < points.size(); ++i) {
      const Point from = points[i - 1], to = points[i];
      // The part of the segment that lies between both edges, as shares of its length.
      double begin = 0, end = 1;
      if (to.y != from.y) {
        const double low = (y_.low - from.y) / (to.y - from.y);
        const double high = (y_.high - from.y) / (to.y - from.y);
        begin = std::max(begin, std::min(low, high));
        end = std::min(end, std::max(low, high));
      } else if (from.y < y_.low || from.y > y_.high) {
        end = -1;
      }
      if (begin > end) {
        pen_is_there = false;
        continue;
      }
      const auto at = [&](double share) {
        if (share <= 0) return place(from);
        if (share >= 1) return place(to);
        return place({from.x + share * (to.x - from.x), from.y + share * (to.y - from.y)});
      };
      if (!pen_is_there || begin > 0) path += "M" + at(begin);
      path += "L" + at(end);
      pen_is_there = end >= 1;
    }
    return path;
  }

  static std::string dash_of(std::size_t number) {
    const auto dash = dashes[number / colours.size() % dashes.size()];
    return dash.empty() ? "" : " stroke-dasharray=\"" + std::string(dash) + "\"";
  }

  void line(std::string_view style, double x, double y, double to_x, double to_y) {
    text_ += "<path class=\"" + std::string(style) + "\" d=\"M" + px(x) + " " + px(y) + "L" +
             px(to_x) + " " + px(to_y) + "\"/>\n";
  }

  std::string text_;
  std::string_view x_name_;
  std::string_view y_name_;
  Axis x_;
  Axis y_;
};

}  // namespace

std::vector<double> ticks(double low, double high, int wanted) {
  if (!(high > low) || !(high - low <= largest) || wanted < 1) return {};
  const double about = (high - low) / wanted;
  const double power = std::pow(10.0, std::floor(std::log10(about)));
  double distance = 10 * power;
  for (const int factor : {5, 2, 1})
    if (factor * power >= about * 0.75) distance = factor * power;
  // Returns no ticks if a double cannot tell neighbours apart.
  if (!(distance > std::max(std::abs(low), std::abs(high)) * 1e-12)) return {};
  std::vector<double> found;
  const double first = std::ceil(low / distance - 1e-9);
  for (int i = 0; (first + i) * distance <= high + distance * 1e-9; ++i)
    found.push_back((first + i) * distance);
  return found;
}

Curve smoothed(const Curve& curve) {
  Curve good{curve.name, {}};
  std::ranges::copy_if(curve.points, std::back_inserter(good.points), is_drawable);
  const std::size_t count = good.points.size(), reach = count / 60;
  Curve mean = good;
  for (std::size_t i = 0; i < count; ++i) {
    // Takes as many points on one side as on the other, so that a slope stays unbiased.
    const std::size_t each = std::min({reach, i, count - 1 - i});
    double sum = 0;
    for (std::size_t j = i - each; j <= i + each; ++j)
      sum += good.points[j].y / static_cast<double>(2 * each + 1);
    mean.points[i].y = sum;
  }
  return mean;
}

Curve thinned(const Curve& curve, int columns) {
  const auto& points = curve.points;
  const auto wanted = static_cast<std::size_t>(columns);
  if (points.size() <= 4 * wanted) return curve;
  Curve thin{curve.name, {}};
  for (std::size_t column = 0; column < wanted; ++column) {
    const std::size_t first = points.size() * column / wanted;
    const std::size_t end = points.size() * (column + 1) / wanted;
    std::array<std::size_t, 4> kept = {first, first, first, end - 1};
    for (std::size_t i = first; i < end; ++i) {
      if (points[i].y < points[kept[1]].y) kept[1] = i;
      if (points[i].y > points[kept[2]].y) kept[2] = i;
    }
    std::ranges::sort(kept);
    const auto last = std::unique(kept.begin(), kept.end());
    for (auto i = kept.begin(); i != last; ++i) thin.points.push_back(points[*i]);
  }
  return thin;
}

std::string to_svg(const LineChart& chart) {
  std::vector<Curve> means, raw;
  std::vector<double> xs, ys;
  for (const auto& curve : chart.curves) {
    Curve good{curve.name, {}};
    std::ranges::copy_if(curve.points, std::back_inserter(good.points), is_drawable);
    const Curve drawn = chart.drawing == Drawing::smoothed ? smoothed(good) : good;
    for (const auto& point : drawn.points) {
      xs.push_back(point.x);
      ys.push_back(point.y);
    }
    means.push_back(thinned(drawn, 500));
    if (chart.drawing == Drawing::smoothed) raw.push_back(thinned(good, 500));
  }
  Drawer drawer(chart.title, chart.x, chart.y);
  const bool is_empty = xs.empty();
  const Axis x =
      is_empty ? Axis{} : axis_of(*std::ranges::min_element(xs), *std::ranges::max_element(xs));
  const double highest = is_empty ? 0 : *std::ranges::max_element(ys);
  drawer.add_frame(x, widened(axis_for(std::move(ys))));
  if (is_empty) {
    drawer.words("mid", (Drawer::left + Drawer::right) / 2, (Drawer::top + Drawer::bottom) / 2,
                 "no data");
    return std::move(drawer).finish();
  }
  drawer.add_x_ticks();
  for (std::size_t number = 0; number < raw.size(); ++number)
    drawer.add_curve("raw", number, raw[number]);
  for (std::size_t number = 0; number < means.size(); ++number)
    drawer.add_curve("curve", number, means[number]);
  drawer.add_cut(highest);
  drawer.add_names(means);
  return std::move(drawer).finish();
}

}  // namespace troupe::apps
