#include "apps/events/event_text.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "core/json.h"

namespace troupe::apps {
namespace {

/// Formats a number briefly, as in "loss 2.412".
std::string brief(double number, int digits = 4) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*g", digits, number);
  return text;
}

std::string thousands(double number) {
  std::string digits = std::to_string(std::llround(number));
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

std::string duration(double seconds) {
  const auto whole = std::llround(seconds);
  if (whole < 60) return std::to_string(whole) + " s";
  if (whole < 3600) return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
  return std::to_string(whole / 3600) + " h " + std::to_string(whole / 60 % 60) + " min";
}

std::string of_gradients(const Value& step) {
  if (step.find("grad_norm")) return "grad norm " + brief(number_in(step, "grad_norm"), 3);
  return "skipped at loss scale " + brief(number_in(step, "loss_scale"), 8);
}

std::string of_skipped(const Value& event) {
  const auto steps = integer_in(event, "skipped_steps");
  if (steps == 0) return {};
  return "; " + std::to_string(steps) + (steps == 1 ? " step was" : " steps were") +
         " skipped because gradients overflowed in fp16";
}

/// Formats a share, as in "31 %".
std::string share_text(double share) { return std::to_string(std::llround(100 * share)) + " %"; }

/// Formats a factor, as in "2.1" or "1,200".
std::string factor_text(double factor) {
  constexpr double has_decimals = 9.95;
  return factor < has_decimals ? brief(factor, 2) : thousands(factor);
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
           brief(number_in(event, "loss"), 5);
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
           (stages == "[]" ? "" : "; stage boundaries at layers " + stages) + "\n" +
           text_of(event, "samples") + " samples in a step: " + text_of(event, "micro_batches") +
           " micro-batches of " + text_of(event, "micro") + ", distributed over " +
           text_of(event, "replicas") +
           (text_of(event, "replicas") == "1" ? " replica" : " replicas");
  }
  if (type == "node.unfit")
    return text_of(event, "node") + " is not used: " + text_of(event, "why");
  if (type == "run.recovered")
    return "recovered in " + brief(number_in(event, "seconds"), 3) + " s from " +
           (text_of(event, "from") == "memory" ? "memory; " : "the newest checkpoint; ") +
           text_of(event, "redone") +
           (integer_in(event, "redone") == 1 ? " step repeated" : " steps repeated");
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

std::string step_line(const Value& step) {
  return "step " + std::to_string(static_cast<std::int64_t>(number_in(step, "step"))) + "  loss " +
         brief(number_in(step, "loss"), 5) + "  " + of_gradients(step) + "  lr " +
         brief(number_in(step, "lr"), 3) + "  " + thousands(number_in(step, "rate")) +
         (step.find("tokens") ? " tokens/s" : " samples/s");
}

std::string step_outlook(const Value& step, double seconds_left) {
  return "  " + brief(number_in(step, "memory") / 1048576, 4) + " MiB  " + duration(seconds_left) +
         " left";
}

}  // namespace troupe::apps
