#include "schedules/formats/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "core/json.h"
#include "core/text.h"
#include "schedules/kind_names.h"

namespace troupe::schedules {
namespace {

struct Colour {
  int red, green, blue;
};

struct Look {
  Kind kind;
  Colour colour;
};

// The palette of Okabe and Ito, whose colours differ for all common kinds of colour blindness.
constexpr std::array<Look, 9> looks = {{
    {Kind::forward, {0, 114, 178}},
    {Kind::backward, {213, 94, 0}},
    {Kind::backward_input, {230, 159, 0}},
    {Kind::backward_weight, {0, 158, 115}},
    {Kind::recompute, {204, 121, 167}},
    {Kind::give, {86, 180, 233}},
    {Kind::update, {128, 128, 128}},
    {Kind::gather, {240, 228, 66}},
    {Kind::release, {240, 228, 66}},
}};

const Look& look_of(Kind kind) { return looks[static_cast<std::size_t>(kind)]; }

constexpr int shades = 4;

/// Mixes in white for the later stages of a device.
Colour shade(Colour colour, int chunk) {
  const double white = std::min(0.24 * chunk, 0.72);
  const auto mix = [white](int part) {
    return static_cast<int>(std::lround(part + white * (255 - part)));
  };
  return {mix(colour.red), mix(colour.green), mix(colour.blue)};
}

bool is_light(Colour colour) {
  return 0.299 * colour.red + 0.587 * colour.green + 0.114 * colour.blue > 140;
}

std::string css(Colour colour) {
  return "rgb(" + std::to_string(colour.red) + "," + std::to_string(colour.green) + "," +
         std::to_string(colour.blue) + ")";
}

/// Prints a length, rounded to hundredths of a pixel.
std::string px(double length) { return shortest(std::round(length * 100) / 100); }

/// Returns 1, 2 or 5 times a power of ten, so that there are about ten ticks.
double tick_distance(double length) {
  const double about = length / 10;
  const double power = std::pow(10.0, std::floor(std::log10(about)));
  for (const int factor : {1, 2, 5})
    if (factor * power >= about) return factor * power;
  return 10 * power;
}

class SvgWriter {
 public:
  SvgWriter(const Timeline& timeline, const std::string& caption)
      : timeline_(timeline), caption_(caption) {
    measure();
    rank_stages();
  }

  std::string write() && {
    open();
    add_style();
    add_rows();
    add_spans();
    add_axis();
    add_legend();
    text_ += "</svg>\n";
    return std::move(text_);
  }

 private:
  static constexpr double left = 70, right = 16, top = 34;
  static constexpr double row = 26, row_gap = 10;
  static constexpr double letter_width = 6.2;

  void measure() {
    bool first = true;
    std::vector<double> lengths;
    for (const auto& span : timeline_.spans) {
      begin_ = first ? span.start : std::min(begin_, span.start);
      end_ = first ? span.end : std::max(end_, span.end);
      first = false;
      if (span.track == Track::compute && span.end > span.start)
        lengths.push_back(span.end - span.start);
    }
    if (!(end_ > begin_)) end_ = begin_ + 1;
    double width = 640;
    if (!lengths.empty()) {
      // Wide enough for the numbers of three quarters of the passes.
      const auto short_one = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 4);
      std::nth_element(lengths.begin(), short_one, lengths.end());
      width = std::clamp((end_ - begin_) / *short_one * 15, 640.0, 3200.0);
    }
    scale_ = width / (end_ - begin_);
    bottom_ = top + timeline_.devices * (row + row_gap);
  }

  /// Ranks the stages of each device; the rank selects the shade.
  void rank_stages() {
    std::map<int, std::set<int>> stages;
    for (const auto& span : timeline_.spans)
      if (span.track == Track::compute) stages[span.device].insert(span.action.stage);
    for (const auto& [device, held] : stages) {
      int rank = 0;
      for (const int stage : held) {
        most_chunks_ = std::max(most_chunks_, rank + 1);
        chunk_[{device, stage}] = std::min(rank++, shades - 1);
      }
    }
  }

  double x(double time) const { return left + (time - begin_) * scale_; }
  double y(int device) const { return top + device * (row + row_gap); }

  void open() {
    const auto width = px(std::max(x(end_) + right, 40 + 6.4 * caption_.size()));
    const auto height = px(bottom_ + 74);
    text_ += "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" +
             height + "\" viewBox=\"0 0 " + width + " " + height + "\" role=\"img\">\n<title>" +
             escaped(timeline_.name) + "</title>\n<desc>" + escaped(caption_) + "</desc>\n";
  }

  void add_style() {
    text_ +=
        "<style>\n"
        "text{font:11px system-ui,sans-serif;fill:#222}\n"
        ".page{fill:#fff}.idle{fill:url(#hatch)}.hatch{stroke:#bbb}.line{stroke:#888}\n"
        ".name{font-size:14px;font-weight:600}.number,.light,.axis{text-anchor:middle}\n"
        ".row{text-anchor:end}.mark{fill:#222}\n"
        "rect.pass{stroke:#fff;stroke-width:.6}\n"
        "@media(prefers-color-scheme:dark){text{fill:#ddd}.page{fill:#16181c}\n"
        ".hatch{stroke:#555}.mark{fill:#ddd}rect.pass{stroke:#16181c}}\n"
        "text.number{fill:#111}text.light{fill:#fff}\n";
    for (const auto& look : looks)
      for (int chunk = 0; chunk < shades; ++chunk)
        text_ += "." + class_of(look.kind, chunk) + "{fill:" + css(shade(look.colour, chunk)) +
                 "}" + (chunk + 1 == shades ? "\n" : "");
    text_ +=
        "</style>\n"
        "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
        "patternTransform=\"rotate(45)\"><line class=\"hatch\" x1=\"0\" y1=\"0\" x2=\"0\" "
        "y2=\"6\"/></pattern></defs>\n"
        "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n";
    add_text("name", 12, 21, timeline_.name);
  }

  static std::string class_of(Kind kind, int chunk) { return letter(kind) + std::to_string(chunk); }

  void add_rect(std::string_view style, double x, double y, double width, double height) {
    text_ += "<rect class=\"";
    text_ += style;
    text_ += "\" x=\"" + px(x) + "\" y=\"" + px(y) + "\" width=\"" + px(width) + "\" height=\"" +
             px(height) + "\"/>\n";
  }

  void add_text(std::string_view style, double x, double y, std::string_view words) {
    text_ += "<text class=\"";
    text_ += style;
    text_ += "\" x=\"" + px(x) + "\" y=\"" + px(y) + "\">" + escaped(words) + "</text>\n";
  }

  void add_rows() {
    for (int device = 0; device < timeline_.devices; ++device) {
      add_text("row", left - 8, y(device) + row / 2 + 4, "device " + std::to_string(device));
      add_rect("idle", left, y(device), x(end_) - left, row);
    }
  }

  void add_spans() {
    std::vector<const Span*> spans;
    for (const auto& span : timeline_.spans) {
      if (span.track == Track::reduce) add_reduction(span);
      if (span.track != Track::compute) continue;
      if (span.action.kind == Kind::update) add_mark(span);
      if (span.end > span.start) spans.push_back(&span);
    }
    std::stable_sort(spans.begin(), spans.end(), [](const Span* a, const Span* b) {
      return a->device != b->device ? a->device < b->device : a->start < b->start;
    });
    for (std::size_t first = 0; first < spans.size();) {
      // Spans that overlap share the row's height.
      auto last = first + 1;
      double end = spans[first]->end;
      while (last < spans.size() && spans[last]->device == spans[first]->device &&
             spans[last]->start < end)
        end = std::max(end, spans[last++]->end);
      const double height = row / static_cast<double>(last - first);
      for (auto member = first; member < last; ++member)
        add_pass(*spans[member], height * static_cast<double>(member - first), height);
      first = last;
    }
  }

  void add_pass(const Span& span, double offset, double height) {
    const int chunk = chunk_[{span.device, span.action.stage}];
    const double width = (span.end - span.start) * scale_;
    const double above = y(span.device) + offset;
    add_rect("pass " + class_of(span.action.kind, chunk), x(span.start), above, width, height);
    if (!has_micro_batch(span.action.kind)) return;
    const auto number = std::to_string(span.action.micro_batch);
    if (width < letter_width * static_cast<double>(number.size()) + 1) return;
    const auto colour = shade(look_of(span.action.kind).colour, chunk);
    add_text(is_light(colour) ? "number" : "light", x(span.start) + width / 2,
             above + height / 2 + 4, number);
  }

  void add_reduction(const Span& span) {
    seen_reduction_ = true;
    add_rect(class_of(Kind::give, 0), x(span.start), y(span.device) + row + 1,
             std::max(1.0, (span.end - span.start) * scale_), 3);
  }

  /// Draws a triangle under the row; its tip marks the time from which the new weights are in use.
  void add_mark(const Span& span) {
    seen_update_ = true;
    const double tip = x(span.end), under = y(span.device) + row + 1;
    text_ += "<path class=\"mark\" d=\"M" + px(tip) + " " + px(under) + "l4 7h-8z\"/>\n";
  }

  void add_axis() {
    text_ += "<path class=\"line\" fill=\"none\" d=\"M" + px(left) + " " + px(bottom_) + "H" +
             px(x(end_)) + "\"/>\n";
    const double distance = tick_distance(end_ - begin_);
    const double digits = std::max(1.0, 1 / distance);
    for (int tick = 0; tick * distance <= (end_ - begin_) * (1 + 1e-9); ++tick) {
      const double time = std::round(tick * distance * digits * 10) / (digits * 10);
      const double at = x(begin_ + tick * distance);
      text_ += "<path class=\"line\" d=\"M" + px(at) + " " + px(bottom_) + "v4\"/>\n";
      add_text("axis", at, bottom_ + 16, shortest(time));
    }
  }

  void add_legend() {
    std::set<Kind> kinds;
    for (const auto& span : timeline_.spans)
      if (span.track == Track::compute && span.end > span.start) kinds.insert(span.action.kind);
    double at = left;
    const double above = bottom_ + 28;
    for (const auto kind : kinds) {
      if (kind == Kind::update) continue;
      for (int chunk = 0; chunk < std::min(most_chunks_, shades); ++chunk, at += 12)
        add_rect(class_of(kind, chunk), at, above, 12, 12);
      at = add_legend_text(at, name_of(kind));
    }
    if (seen_reduction_) {
      add_rect(class_of(Kind::give, 0), at, above + 5, 14, 3);
      at = add_legend_text(at + 14, name_of(Kind::give));
    }
    if (seen_update_) {
      text_ += "<path class=\"mark\" d=\"M" + px(at + 4) + " " + px(above + 2) + "l4 7h-8z\"/>\n";
      at = add_legend_text(at + 8, name_of(Kind::update));
    }
    add_rect("idle", at, above, 14, 12);
    add_legend_text(at + 14, "idle");
    add_text("caption", left, bottom_ + 60, caption_);
  }

  double add_legend_text(double at, std::string_view words) {
    add_text("legend", at + 5, bottom_ + 38, words);
    return at + 5 + letter_width * static_cast<double>(words.size()) + 16;
  }

  const Timeline& timeline_;
  const std::string& caption_;
  double begin_ = 0;
  double end_ = 0;
  double scale_ = 1;
  double bottom_ = 0;
  int most_chunks_ = 1;
  bool seen_reduction_ = false;
  bool seen_update_ = false;
  std::map<std::pair<int, int>, int> chunk_;  // Keyed by device and stage.
  std::string text_;
};

}  // namespace

std::string to_svg(const Timeline& timeline, const std::string& caption) {
  return SvgWriter(timeline, caption).write();
}

}  // namespace troupe::schedules
