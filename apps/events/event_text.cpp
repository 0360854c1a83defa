#include "apps/events/event_text.h"

#include <cmath>
#include <cstddef>
#include <string_view>

#include "apps/events/number_text.h"
#include "core/json.h"
#include "core/printable.h"

namespace troupe::apps {
namespace {

std::string of_skipped(const Value& event) {
  const auto steps = integer_in(event, "skipped_steps");
  if (steps == 0) return {};
  return "; " + std::to_string(steps) + (steps == 1 ? " step was" : " steps were") +
         " skipped: gradients overflowed in fp16, no target counted, or samples were left out";
}

/// Formats a share, as in "31 %".
std::string share_text(double share) { return std::to_string(std::llround(100 * share)) + " %"; }

/// Formats a factor, as in "2.1" or "1,200".
std::string factor_text(double factor) {
  constexpr double has_decimals = 9.95;
  return factor < has_decimals ? brief(factor, 2) : thousands(factor);
}

/// Says which samples were left out, and why.
std::string spike_text(const Value& event) {
  const auto first = integer_in(event, "first");
  std::string sources;
  if (const Value* counts = event.find("of_sources"); counts && counts->map())
    for (const auto& entry : *counts->map())
      sources +=
          (sources.empty() ? " (" : ", ") + to_json(entry.value) + " of " + printable(entry.key);
  return "step " + text_of(event, "step") + "  " + text_of(event, "why") + "; its samples " +
         std::to_string(first) + " to " + std::to_string(first + integer_in(event, "samples") - 1) +
         " are left out" + sources + (sources.empty() ? "" : ")");
}

/// Quotes a text on one line. A long one is cut.
std::string sample_text(std::string_view text) {
  constexpr std::size_t most_bytes = 400;
  const bool is_long = text.size() > most_bytes;
  std::size_t end = is_long ? most_bytes : text.size();
  while (is_long && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return '"' + printable(text.substr(0, end)) + (is_long ? " ...\"" : "\"");
}

}  // namespace

std::string straggler_text(const Value& event) {
  const std::string cause = text_of(event, "cause");
  const std::string times = factor_text(number_in(event, "factor"));
  const std::string share = share_text(number_in(event, "share"));
  const std::string since = " (since step " + text_of(event, "since") + "; ";
  if (cause != "computing")
    return "the " + cause + " takes " + times + " times longer than before" + since +
           "a round trip costs " + share + " of a step more)";
  return "device " + text_of(event, "device") + " computes " + times + " times slower than " +
         (text_of(event, "than") == "before" ? "before" : "other devices with the same stage") +
         since + "costs up to " + share + " of a step)";
}

std::string sentence(const Value& event) {
  const std::string type = text_of(event, "type");
  if (type == "run.state") {
    const std::string why = text_of(event, "why");
    return "run " + text_of(event, "run") + ": " + text_of(event, "state") +
           (why.empty() ? "" : ": " + why) + of_skipped(event);
  }
  if (type == "eval")
    return "step " + text_of(event, "step") + "  validation loss " +
           loss_text(number_in(event, "loss"));
  if (type == "sample")
    return "step " + text_of(event, "step") +
           "  sample: " + sample_text(text_of(event, "prompt") + text_of(event, "text"));
  if (type == "run.spike") return spike_text(event);
  if (type == "run.stopped_early")
    return "step " + text_of(event, "step") + "  " + text_of(event, "why");
  if (type == "checkpoint.saved")
    return "step " + text_of(event, "step") + "  saved " + text_of(event, "directory");
  if (type == "warn") return "warning: " + text_of(event, "text");
  if (type == "plan.changed") {
    const double gain = number_in(event, "gain");
    return "placement: " + text_of(event, "why") +
           (gain > 0 ? "; steps should take " + brief(100 * gain, 2) + " % less time" : "");
  }
  if (type == "run.chosen") {
    const std::string stages = text_of(event, "stages");
    return "precision " + text_of(event, "why") +
           (stages == "[]" ? "" : "; stage boundaries at units " + stages) + "\n" +
           text_of(event, "samples") + " samples in a step: " + text_of(event, "micro_batches") +
           " micro-batches of " + text_of(event, "micro") + ", distributed over " +
           text_of(event, "replicas") +
           (text_of(event, "replicas") == "1" ? " replica" : " replicas") +
           (text_of(event, "plan_why").empty() ? "" : "\n" + text_of(event, "plan_why"));
  }
  if (type == "node.unfit")
    return text_of(event, "node") + " is not used: " + text_of(event, "why");
  if (type == "run.recovered")
    return "recovered in " + brief(number_in(event, "seconds"), 3) + " s from " +
           (text_of(event, "from") == "memory" ? "memory; " : "the newest checkpoint; ") +
           text_of(event, "redone") +
           (integer_in(event, "redone") == 1 ? " step repeated" : " steps repeated");
  if (type == "decision") return "decided: " + text_of(event, "why");
  if (type == "stage.stalled")
    return "stalled: " + text_of(event, "who") + ": " + text_of(event, "what");
  if (type == "node.straggler") {
    const std::string node = text_of(event, "node");
    const std::string cause = text_of(event, "cause");
    // A node at the end of a slow link may be as fast as ever.
    if (!event.find("over"))
      return node + (cause == "computing" ? " is slow: " : ": ") + straggler_text(event);
    return node + ": " +
           (cause == "computing" ? "device " + text_of(event, "device") : "the " + cause) +
           " is not slow any more: " + text_of(event, "why");
  }
  if (type == "run.changed") return text_of(event, "set") + " after step " + text_of(event, "step");
  return type + " " + to_json(event);
}

}  // namespace troupe::apps
