#include "schedules/formats/blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/json.h"
#include "core/text.h"
#include "schedules/kind_names.h"

namespace troupe::schedules {
namespace {

/// The colours of a kind among the 256 of terminals: those of the pictures, and lighter ones.
struct BlockLook {
  Kind kind;
  int colour, lighter;
};

constexpr std::array<BlockLook, 9> block_looks = {{
    {Kind::forward, 32, 117},
    {Kind::backward, 208, 216},
    {Kind::backward_input, 214, 223},
    {Kind::backward_weight, 36, 121},
    {Kind::recompute, 175, 218},
    {Kind::give, 117, 153},
    {Kind::update, 247, 252},
    {Kind::gather, 227, 230},
    {Kind::release, 227, 230},
}};

constexpr std::size_t most_bands = 12;
constexpr std::size_t least_columns = 20;  // A band has at least so many.

/// The content of one column of a row.
struct Cell {
  char letter = ' ';
  int colour = 0;  // 0: none.
};

class BlockWriter {
 public:
  BlockWriter(const Timeline& timeline, std::size_t columns, bool has_colours)
      : timeline_(timeline), has_colours_(has_colours) {
    measure(columns);
    rank_stages();
    fill();
  }

  std::string write(const std::string& caption, std::size_t columns) const {
    std::string text = timeline_.name + "\n";
    for (std::size_t first = 0; first < length_; first += band_) {
      text += "\n" + axis(first);
      for (const auto& [device, lane] : rows_) text += row(device, lane, first);
    }
    return text + "\n" + wrapped(legend(), columns) + wrapped(caption, columns) + "\n";
  }

 private:
  void measure(std::size_t columns) {
    std::vector<double> lengths;
    int most_batch = 0;
    bool first = true;
    for (const auto& span : timeline_.spans) {
      if (span.track != Track::compute) continue;
      begin_ = first ? span.start : std::min(begin_, span.start);
      end_ = first ? span.end : std::max(end_, span.end);
      first = false;
      most_batch = std::max(most_batch, static_cast<int>(span.action.micro_batch));
      if (span.end > span.start) lengths.push_back(span.end - span.start);
    }
    name_width_ = 9 + std::to_string(std::max(0, timeline_.devices - 1)).size();
    band_ = std::max(least_columns, columns > name_width_ ? columns - name_width_ : 0);
    if (lengths.empty()) return;
    // Three quarters of the passes show their letter and number.
    const auto short_one = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 4);
    std::nth_element(lengths.begin(), short_one, lengths.end());
    const auto wanted = static_cast<double>(1 + std::to_string(most_batch).size());
    const auto most = static_cast<double>(most_bands * band_ - 1);
    scale_ = std::min(wanted / *short_one, most / (end_ - begin_));
    length_ = column_of(end_);
  }

  /// Ranks the stages of each device; those behind the first are lighter.
  void rank_stages() {
    for (const auto& span : timeline_.spans) {
      const auto first = first_stage_.emplace(span.device, span.action.stage).first;
      first->second = std::min<int>(first->second, span.action.stage);
    }
  }

  void fill() {
    for (int device = 0; device < timeline_.devices; ++device) rows_[{device, 0}];
    std::vector<const Span*> spans;
    for (const auto& span : timeline_.spans)
      if (span.track == Track::compute && span.end > span.start) spans.push_back(&span);
    std::ranges::stable_sort(spans, {}, &Span::start);
    std::map<std::pair<int, int>, double> busy_until;  // Keyed by device and lane.
    for (const Span* span : spans) {
      int lane = 0;
      while (busy_until.contains({span->device, lane}) &&
             busy_until[{span->device, lane}] > span->start)
        ++lane;
      busy_until[{span->device, lane}] = span->end;
      kinds_.insert(span->action.kind);
      put(*span, rows_[{span->device, lane}]);
    }
  }

  void put(const Span& span, std::vector<Cell>& cells) {
    cells.resize(length_);
    const auto first = column_of(span.start), end = column_of(span.end);
    std::string label(1, letter(span.action.kind));
    if (has_micro_batch(span.action.kind)) label += std::to_string(span.action.micro_batch);
    // A number without its last digits would be another one.
    if (label.size() > end - first) label.resize(std::min<std::size_t>(1, end - first));
    const auto& look = block_looks[static_cast<std::size_t>(span.action.kind)];
    const bool is_first = first_stage_.at(span.device) == span.action.stage;
    has_lighter_ = has_lighter_ || !is_first;
    for (auto i = first; i < end; ++i)
      cells[i] = {i - first < label.size() ? label[i - first]
                  : has_colours_           ? ' '
                                           : '-',
                  is_first ? look.colour : look.lighter};
  }

  std::size_t column_of(double time) const {
    return static_cast<std::size_t>(std::lround((time - begin_) * scale_));
  }

  std::string row(const std::pair<int, int>& place, const std::vector<Cell>& cells,
                  std::size_t first) const {
    std::string text = place.second == 0 ? "device " + std::to_string(place.first) : "";
    text.resize(name_width_, ' ');
    int colour = 0;
    for (auto i = first; i < std::min(cells.size(), first + band_); ++i) {
      if (has_colours_ && cells[i].colour != colour) {
        colour = cells[i].colour;
        text += colour == 0 ? "\x1b[m" : "\x1b[38;5;16;48;5;" + std::to_string(colour) + "m";
      }
      text += cells[i].letter;
    }
    if (colour != 0) text += "\x1b[m";
    text.resize(text.find_last_not_of(' ') + 1);
    return text + "\n";
  }

  /// Returns the times above a band.
  std::string axis(std::size_t first) const {
    constexpr std::size_t distance = 10;
    std::string text(name_width_, ' ');
    for (auto at = first; at < std::min(length_, first + band_); at += distance) {
      const auto time = shortest(std::round(static_cast<double>(at) / scale_ * 100) / 100);
      if (at + time.size() >= first + band_) break;
      text.resize(name_width_ + at - first, ' ');
      text += time;
    }
    return text + "\n";
  }

  std::string legend() const {
    std::string text;
    for (const auto kind : kinds_) {
      if (!text.empty()) text += "; ";
      text += std::string(1, letter(kind)) + " " + std::string(name_of(kind));
    }
    if (has_colours_ && has_lighter_) text += "; lighter: a device's other stages";
    return text + "\n";
  }

  const Timeline& timeline_;
  const bool has_colours_;
  double begin_ = 0, end_ = 0;
  double scale_ = 1;            // Columns per unit of time.
  std::size_t name_width_ = 0;  // Columns before a band.
  std::size_t band_ = 0;
  std::size_t length_ = 0;  // Columns of the whole timeline.
  bool has_lighter_ = false;
  std::set<Kind> kinds_;
  std::map<int, int> first_stage_;                         // Keyed by device.
  std::map<std::pair<int, int>, std::vector<Cell>> rows_;  // Keyed by device and lane.
};

}  // namespace

std::string to_blocks(const Timeline& timeline, const std::string& caption, std::size_t columns,
                      bool has_colours) {
  return BlockWriter(timeline, columns, has_colours).write(caption, columns);
}

}  // namespace troupe::schedules
