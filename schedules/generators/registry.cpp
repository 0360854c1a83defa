#include "schedules/generators/registry.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "core/text.h"
#include "schedules/generators/generators.h"
#include "schedules/text.h"

namespace troupe::schedules {
namespace {

// A stage has at most F, I, W, A and O for each micro-batch.
constexpr std::int64_t max_passes = static_cast<std::int64_t>(max_actions) / 5;

std::string fits(PipelineShape) { return {}; }

std::string needs_even(const std::string& what, int found) {
  if (found % 2 == 0) return {};
  return "needs an even number of " + what + ", found " + std::to_string(found) + "; use " +
         (found > 1 ? std::to_string(found - 1) + " or " : "") + std::to_string(found + 1);
}

std::string fits_two_directions(PipelineShape shape) {
  const std::string devices = needs_even("devices", shape.devices());
  return devices.empty() ? needs_even("micro-batches", shape.micro_batches) : devices;
}

std::string fits_dual_pipe_v(PipelineShape shape) {
  if (shape.micro_batches >= 2 * shape.devices()) return {};
  return "needs at least twice as many micro-batches as devices, found " +
         std::to_string(shape.micro_batches) + " for " + std::to_string(shape.devices()) +
         " devices; use " + std::to_string(2 * shape.devices()) + " or more";
}

std::string fits_dual_pipe(PipelineShape shape) {
  const std::string directions = fits_two_directions(shape);
  return directions.empty() ? fits_dual_pipe_v(shape) : directions;
}

constexpr auto sync = Mode::synchronous;
constexpr auto async = Mode::asynchronous;

constexpr NamedSchedule schedules[] = {
    {"seq", "One micro-batch at a time through the whole pipeline: the baseline.", "any shape",
     sync, Chunks::one, fits, sequential},
    {"gpipe", "All forward passes, then all backward passes.", "any shape", sync, Chunks::one, fits,
     gpipe},
    {"1f1b", "A stage runs ahead by its distance to the last one, then alternates.", "any shape",
     sync, Chunks::one, fits, one_f_one_b},
    {"1f1b-eager", "1f1b that runs ahead twice as far, which hides slow links.", "any shape", sync,
     Chunks::one, fits, one_f_one_b_eager},
    {"interleaved", "1f1b with several stages on a device: less idle time, more messages.",
     "chunks of 2 or more", sync, Chunks::several, fits, interleaved},
    {"bfs", "Each stage takes all micro-batches at once: good where weights are sharded.",
     "chunks of 2 or more", sync, Chunks::several, fits, breadth_first},
    {"zb-h1", "Weight gradients fill the gaps, at the memory of 1f1b.", "any shape", sync,
     Chunks::one, fits, zero_bubble_h1},
    {"zb-h2", "Weight gradients fill all gaps, at twice the memory of 1f1b.", "any shape", sync,
     Chunks::one, fits, zero_bubble_h2},
    {"zb-v",
     "Two chunks in a V fill all gaps at the memory of 1f1b, if F, I and W take equally long.",
     "2 chunks", sync, Chunks::two, fits, zero_bubble_v},
    {"v-half", "Two chunks in a V at half the memory of 1f1b.", "2 chunks", sync, Chunks::two, fits,
     v_half},
    {"v-min", "Two chunks in a V at a third of the memory of 1f1b.", "2 chunks", sync, Chunks::two,
     fits, v_min},
    {"dualpipe", "Two pipelines from both ends whose passes overlap.",
     "even devices, even micro-batches, twice as many of them as devices", sync, Chunks::one,
     fits_dual_pipe, dual_pipe},
    {"dualpipev", "dualpipe folded into a V, so that weights are held once.",
     "2 chunks, twice as many micro-batches as devices", sync, Chunks::two, fits_dual_pipe_v,
     dual_pipe_v},
    {"chimera", "Two pipelines in opposite directions fill each other's gaps.",
     "even devices, even micro-batches", sync, Chunks::one, fits_two_directions, chimera},
    {"hanayo", "Waves through a snake of w times two chunks per device.",
     "an even number of chunks", sync, Chunks::even, fits, hanayo},
    {"pipedream", "1f1b whose stages take new weights after every backward pass.", "any shape",
     async, Chunks::one, fits, pipedream},
    {"pipedream-2bw", "1f1b that updates seldom enough for two versions of the weights.",
     "any shape", async, Chunks::one, fits, pipedream_2bw},
};

/// A parsed name: "interleaved-v2" is "interleaved" with 2 chunks.
struct Asked {
  const NamedSchedule* schedule = nullptr;
  std::optional<int> chunks;
};

const NamedSchedule* exactly(std::string_view name) {
  if (name == "2bw") name = "pipedream-2bw";
  const auto found = std::ranges::find(schedules, name, &NamedSchedule::name);
  return found == std::end(schedules) ? nullptr : &*found;
}

Asked take_apart(std::string_view name) {
  if (const auto* schedule = exactly(name)) return {schedule, std::nullopt};
  const std::size_t dash = name.rfind('-');
  if (dash == name.npos || dash + 2 > name.size()) return {};
  const auto* schedule = exactly(name.substr(0, dash));
  const std::string_view number = name.substr(dash + 2);
  int chunks = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), chunks);
  const bool is_number = error == std::errc() && end == number.data() + number.size();
  if (!schedule || !is_number || chunks < 1 || chunks > max_stages) return {};
  const char unit = name[dash + 1];
  if (schedule->chunks == Chunks::even && unit == 'w') return {schedule, 2 * chunks};
  if (schedule->chunks == Chunks::several && unit == 'v') return {schedule, chunks};
  return {};
}

Error unknown(std::string_view name) {
  name = name.substr(0, 40);
  std::vector<const NamedSchedule*> nearest;
  for (const NamedSchedule& schedule : schedules) nearest.push_back(&schedule);
  std::ranges::stable_sort(
      nearest, {}, [&](const auto* schedule) { return edit_distance(name, schedule->name); });
  std::string text = "there is no schedule '" + std::string(name) + "'; the nearest are";
  for (std::size_t k = 0; k < 3; ++k) text += (k == 0 ? " " : ", ") + std::string(nearest[k]->name);
  return {text};
}

std::string chunks_objection(Chunks chunks, int found) {
  const std::string tail = ", found chunks = " + std::to_string(found);
  switch (chunks) {
    case Chunks::one:
      return found == 1 ? "" : "has one stage on each device" + tail + "; use 1";
    case Chunks::two:
      return found == 2 ? "" : "has two stages on each device" + tail + "; use 2";
    case Chunks::several:
      return found >= 2 ? "" : "needs several stages on each device" + tail + "; use 2 or more";
    case Chunks::even:
      return found % 2 == 0 ? ""
                            : "needs an even number of stages on each device" + tail + "; use " +
                                  std::to_string(found + 1);
  }
  return {};
}

std::string range_objection(PipelineShape shape) {
  const auto out_of = [](const std::string& what, int found, int most) {
    return "needs " + what + " from 1 to " + std::to_string(most) + ", found " +
           std::to_string(found);
  };
  if (shape.stages < 1 || shape.stages > max_stages)
    return out_of("stages", shape.stages, max_stages);
  if (shape.micro_batches < 1 || shape.micro_batches > max_micro_batches)
    return out_of("micro-batches", shape.micro_batches, max_micro_batches);
  if (shape.chunks < 1 || shape.chunks > max_stages)
    return out_of("chunks", shape.chunks, max_stages);
  const std::int64_t passes = std::int64_t{shape.stages} * shape.micro_batches;
  if (passes > max_passes)
    return "would have " + std::to_string(passes) + " forward passes for " +
           std::to_string(shape.stages) + " stages and " + std::to_string(shape.micro_batches) +
           " micro-batches; at most " + std::to_string(max_passes) + " fit";
  return {};
}

std::string divisibility_objection(PipelineShape shape) {
  if (shape.stages % shape.chunks == 0) return {};
  const int below = shape.stages / shape.chunks * shape.chunks;
  return "has " + std::to_string(shape.chunks) + " stages on each device, which does not divide " +
         std::to_string(shape.stages) + " stages; use " +
         (below > 0 ? std::to_string(below) + " or " : "") + std::to_string(below + shape.chunks);
}

}  // namespace

std::span<const NamedSchedule> named_schedules() { return schedules; }

const NamedSchedule* find_schedule(std::string_view name) { return take_apart(name).schedule; }

Result<Schedule> generate(std::string_view name, PipelineShape shape) {
  const auto [schedule, chunks] = take_apart(name);
  if (!schedule) return unknown(name);
  if (chunks && shape.chunks != 1 && shape.chunks != *chunks)
    return Error{std::string(name) + " has " + std::to_string(*chunks) +
                 " chunks by its name, found chunks = " + std::to_string(shape.chunks) +
                 "; leave one of them out"};
  if (chunks) shape.chunks = *chunks;
  if (schedule->chunks == Chunks::two && shape.chunks == 1) shape.chunks = 2;

  std::string objection = range_objection(shape);
  if (objection.empty()) objection = chunks_objection(schedule->chunks, shape.chunks);
  if (objection.empty()) objection = divisibility_objection(shape);
  if (objection.empty()) objection = schedule->objection(shape);
  if (!objection.empty()) return Error{std::string(schedule->name) + ' ' + objection};
  return schedule->generate(shape);
}

}  // namespace troupe::schedules
