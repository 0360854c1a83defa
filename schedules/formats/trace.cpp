#include "schedules/formats/trace.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "core/json.h"

namespace troupe::schedules {
namespace {

std::string_view name_of(Track track) {
  switch (track) {
    case Track::compute:
      return "compute";
    case Track::send:
      return "send";
    case Track::receive:
      return "receive";
    case Track::reduce:
      return "reduce";
  }
  return "?";
}

/// Writes the events. Times are whole nanoseconds: microseconds with three decimals are exact.
class TraceWriter {
 public:
  explicit TraceWriter(const Timeline& timeline) : timeline_(timeline) {
    bool first = true;
    for (const auto& span : timeline.spans) {
      begin_ = first ? span.start : std::min(begin_, span.start);
      first = false;
    }
  }

  std::string write() && {
    text_ = "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"name\":" + to_json(timeline_.name) +
            "},\"traceEvents\":[";
    for (int device = 0; device < timeline_.devices; ++device)
      add_name("process", device, 0, "device " + std::to_string(device), device);
    add_tracks();
    for (std::size_t span = 0; span < timeline_.spans.size(); ++span) add_span(span);
    for (std::size_t message = 0; message < timeline_.messages.size(); ++message)
      add_message(message);
    for (const auto& level : timeline_.levels) add_level(level);
    return std::move(text_) + "\n]}\n";
  }

 private:
  double nanoseconds(double time) const { return std::round((time - begin_) * 1e9); }

  /// Viewers treat process 0 as the idle process, so numbers start at 1.
  static std::string process(int device) { return std::to_string(device + 1); }

  void begin_event(std::string_view kind, int device, int thread) {
    text_ += separator_;
    text_ += "{\"ph\":\"";
    text_ += kind;
    text_ += "\",\"pid\":" + process(device) + ",\"tid\":" + std::to_string(thread);
    separator_ = ",\n";
  }
  void add_time(std::string_view key, double nanoseconds) {
    text_ += ",\"";
    text_ += key;
    text_ += "\":" + shortest(nanoseconds / 1e3);
  }

  void add_name(const std::string& what, int device, int thread, const std::string& name,
                int order) {
    begin_event("M", device, thread);
    text_ += ",\"name\":\"" + what + "_name\",\"args\":{\"name\":\"" + name + "\"}}";
    begin_event("M", device, thread);
    text_ += ",\"name\":\"" + what +
             "_sort_index\",\"args\":{\"sort_index\":" + std::to_string(order) + "}}";
  }

  /// Assigns spans to tracks. Viewers draw a track correctly only if its spans do not overlap, so
  /// an overlapping span goes to an additional track.
  void add_tracks() {
    const auto& spans = timeline_.spans;
    std::vector<std::size_t> order(spans.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      if (spans[a].device != spans[b].device) return spans[a].device < spans[b].device;
      if (spans[a].track != spans[b].track) return spans[a].track < spans[b].track;
      return nanoseconds(spans[a].start) < nanoseconds(spans[b].start);
    });
    thread_.resize(spans.size());
    std::vector<double> ends;  // The end times of the tracks of this device and kind.
    int first_thread = 1;
    for (std::size_t place = 0; place < order.size(); ++place) {
      const auto& span = spans[order[place]];
      const bool new_kind = place == 0 || spans[order[place - 1]].device != span.device ||
                            spans[order[place - 1]].track != span.track;
      if (new_kind) {
        first_thread += static_cast<int>(ends.size());
        ends.clear();
      }
      const double start = nanoseconds(span.start);
      const auto free =
          std::find_if(ends.begin(), ends.end(), [start](double end) { return end <= start; });
      const auto track = free - ends.begin();
      const int thread = first_thread + static_cast<int>(track);
      if (free == ends.end()) {
        ends.push_back(0);
        auto name = std::string(name_of(span.track));
        if (track > 0) name += " " + std::to_string(track + 1);
        add_name("thread", span.device, thread, name, thread);
      }
      ends[static_cast<std::size_t>(track)] = nanoseconds(span.end);
      thread_[order[place]] = thread;
    }
  }

  void add_span(std::size_t index) {
    const auto& span = timeline_.spans[index];
    const double start = nanoseconds(span.start);
    begin_event("X", span.device, thread_[index]);
    add_time("ts", start);
    add_time("dur", nanoseconds(span.end) - start);
    text_ += ",\"name\":\"" + to_string(span.action) + "\",\"cat\":\"";
    text_ += name_of(span.track);
    text_ += "\",\"args\":{\"stage\":" + std::to_string(span.action.stage);
    if (has_micro_batch(span.action.kind))
      text_ += ",\"micro_batch\":" + std::to_string(span.action.micro_batch);
    text_ += "}}";
  }

  void add_message(std::size_t index) {
    const auto& message = timeline_.messages[index];
    const auto& from = timeline_.spans[message.from];
    const auto& to = timeline_.spans[message.to];
    // An arrow attaches to the span in which it begins, so it starts before that span ends.
    const double start = nanoseconds(from.start);
    add_arrow("s", index, from, thread_[message.from], std::max(start, nanoseconds(from.end) - 1));
    add_arrow("f", index, to, thread_[message.to], nanoseconds(to.start));
  }

  void add_arrow(std::string_view end, std::size_t id, const Span& span, int thread, double time) {
    begin_event(end, span.device, thread);
    add_time("ts", time);
    text_ += ",\"id\":" + std::to_string(id);
    text_ += span.action.kind == Kind::forward ? ",\"name\":\"activation\",\"cat\":\"message\""
                                               : ",\"name\":\"gradient\",\"cat\":\"message\"";
    text_ += end == "f" ? ",\"bp\":\"e\"}" : "}";
  }

  void add_level(const StashLevel& level) {
    begin_event("C", level.device, 0);
    add_time("ts", std::max(0.0, nanoseconds(level.time)));
    text_ += ",\"name\":\"activations held\",\"args\":{\"bytes\":" + shortest(level.bytes) + "}}";
  }

  const Timeline& timeline_;
  double begin_ = 0;
  std::vector<int> thread_;  // Indexed by span.
  std::string separator_ = "\n";
  std::string text_;
};

}  // namespace

std::string to_trace(const Timeline& timeline) { return TraceWriter(timeline).write(); }

}  // namespace troupe::schedules
