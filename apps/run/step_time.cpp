#include "apps/run/step_time.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <span>
#include <utility>

#include "apps/run/plan_request.h"
#include "core/units.h"
#include "schedules/plan/plan_format.h"

namespace troupe::apps {
namespace {

namespace sched = troupe::schedules;
using models::KernelCalls;

/// Returns why the model does not apply to this run, if so.
Status can_model(const config::RunConfig& config, kernels::Precision precision) {
  if (is_asynchronous(config))
    return Error{"pipeline.schedule: found \"" + config.pipeline.schedule +
                 "\", which is asynchronous, wanted a synchronous schedule; choose one, or plan "
                 "without --device"};
  if (const int replicas = config.pipeline.replicas.value_or(1); replicas != 1)
    return Error{"pipeline.replicas: found " + std::to_string(replicas) +
                 ", wanted 1, because --device models one replica; set pipeline.replicas = 1 and "
                 "batch.global to the samples of one replica"};
  if (kernels::facts_of(precision).makers == kernels::Makers::cores)
    return Error{"precision.compute: found \"" + std::string(to_string(precision)) +
                 "\", whose products the cores compute, wanted a precision of GPUs; use "
                 "\"bf16-gpu\", \"fp16-gpu\", \"tf32\" or \"fp32\""};
  return Done{};
}

/// The factors of the model's products.
kernels::Factors factors_of(kernels::Precision precision) {
  if (!kernels::is_on_tensor_cores(precision)) return kernels::Factors::fp32;
  return kernels::activation_type(precision) == DType::f32 ? kernels::Factors::tf32
                                                           : kernels::Factors::bits16;
}

/// The peaks to compute times by: the datasheet's, and the measured ones if they include the rate
/// of every product of the step.
std::vector<CardPeaks> peaks_of(const StepTime& time) {
  std::vector<CardPeaks> peaks{time.card.datasheet};
  if (!time.card.measured) return peaks;
  for (const auto& stage : time.stages)
    for (const auto* part : {&stage.calls.forward, &stage.calls.backward, &stage.calls.end})
      for (const auto& [call, times] : *part)
        if (call.operations > 0 && time.card.measured->operations(call.factors) == 0) return peaks;
  peaks.push_back(*time.card.measured);
  return peaks;
}

double seconds_of(const std::vector<KernelCalls>& calls, const CardPeaks& peaks) {
  double sum = 0;
  for (const auto& [call, times] : calls) sum += static_cast<double>(times) * peaks.seconds(call);
  return sum;
}

/// The sums over all stages by one set of peaks.
struct Sums {
  double forward = 0, backward = 0, end = 0;  // Seconds in a step.
  double all() const { return forward + backward + end; }
};
Sums sums_of(const StepTime& time, const CardPeaks& peaks) {
  Sums sums;
  for (const auto& stage : time.stages) {
    sums.forward += seconds_of(stage.calls.forward, peaks);
    sums.backward += seconds_of(stage.calls.backward, peaks);
    sums.end += seconds_of(stage.calls.end, peaks);
  }
  return sums;
}

/// The seconds of a step if all devices compute without a pause.
double step_of(const StepTime& time, const Sums& sums) { return sums.all() / time.devices; }

double samples_of(const StepTime& time) {
  return static_cast<double>(time.micro) * static_cast<double>(time.micro_batches);
}

/// The operations of the model in a step: a backward pass has twice those of a forward pass.
double model_operations(const StepTime& time) {
  double forward = 0;
  for (const auto& stage : time.stages) forward += stage.calls.forward_operations();
  return 3 * forward;
}

/// Returns the share of the datasheet's rate that the model's operations reach.
double share_of_peak(const StepTime& time, const Sums& sums) {
  return model_operations(time) / sums.all() /
         time.card.datasheet.operations(factors_of(time.precision));
}

std::string decimal(double number, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, number);
  return text;
}

std::string sizes_of(const kernels::KernelCall& call) {
  std::string text;
  for (const auto size : call.sizes) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

std::string title_of(const CardPeaks& peaks) {
  std::string text = decimal(peaks.bits16 * 1e-12, 1) + " TFLOP/s in 16 bits";
  if (peaks.tf32 > 0) text += ", " + decimal(peaks.tf32 * 1e-12, 1) + " in tf32";
  if (peaks.fp32 > 0) text += ", " + decimal(peaks.fp32 * 1e-12, 1) + " in fp32";
  return text + "; " + decimal(peaks.bytes * 1e-12, 2) + " TB/s (" + std::string(peaks.source) +
         ")";
}

/// Appends the cells of times to a row, for each set of peaks.
template <class Seconds>
void add_times(std::vector<std::string>& row, std::span<const CardPeaks> peaks, double scale,
               int digits, Seconds seconds) {
  for (const auto& one : peaks) row.push_back(decimal(seconds(one) * scale, digits));
}

void add_part(sched::TextTable& table, const char* name, const std::vector<KernelCalls>& calls,
              std::span<const CardPeaks> peaks, double step) {
  const std::size_t columns = 7 + 2 * peaks.size();
  std::vector<std::string> head(columns);
  head[0] = name;
  table.add(std::move(head));
  std::int64_t all_times = 0;
  double bytes = 0, operations = 0;
  for (const auto& entry : calls) {
    const auto& call = entry.call;
    const std::int64_t times = entry.times;
    const auto each = static_cast<double>(times);
    all_times += times;
    bytes += each * call.bytes;
    operations += each * call.operations;
    const bool is_moving = call.bytes / peaks[0].bytes >= peaks[0].seconds(call);
    std::vector<std::string> row{"  " + std::string(call.kernel),
                                 sizes_of(call),
                                 std::to_string(times),
                                 decimal(call.bytes * 1e-6, 3),
                                 decimal(call.operations * 1e-9, 2),
                                 is_moving ? "memory" : "math"};
    add_times(row, peaks, 1e6, 2, [&](const CardPeaks& one) { return one.seconds(call); });
    add_times(row, peaks, 1e3, 3, [&](const CardPeaks& one) { return each * one.seconds(call); });
    row.push_back(sched::percent(each * peaks[0].seconds(call) / step));
    table.add(std::move(row));
  }
  std::vector<std::string> sum{"  sum",
                               "",
                               std::to_string(all_times),
                               decimal(bytes * 1e-6, 3),
                               decimal(operations * 1e-9, 2),
                               ""};
  sum.resize(sum.size() + peaks.size());
  add_times(sum, peaks, 1e3, 3, [&](const CardPeaks& one) { return seconds_of(calls, one); });
  sum.push_back(sched::percent(seconds_of(calls, peaks[0]) / step));
  table.add(std::move(sum));
}

std::string kernels_table(const StageCalls& stage, std::span<const CardPeaks> peaks) {
  const auto& calls = stage.calls;
  const double step = seconds_of(calls.forward, peaks[0]) + seconds_of(calls.backward, peaks[0]) +
                      seconds_of(calls.end, peaks[0]);
  const bool has_two = peaks.size() > 1;
  std::vector<std::string> header{"kernel", "sizes", "times", "MB", "GFLOP", "bound by", "us"};
  if (has_two) header.emplace_back("measured");
  header.emplace_back("ms a step");
  if (has_two) header.emplace_back("measured");
  header.emplace_back("share");
  sched::TextTable table(std::move(header));
  add_part(table, "forward", calls.forward, peaks, step);
  add_part(table, "backward", calls.backward, peaks, step);
  add_part(table, "end of the step", calls.end, peaks, step);
  return table.text();
}

std::string sums_table(const StepTime& time, std::span<const CardPeaks> peaks) {
  std::vector<std::string> header{"all stages", "datasheet"};
  if (peaks.size() > 1) header.emplace_back("measured");
  sched::TextTable table(std::move(header));
  const auto add = [&](std::string name, int digits, const std::string& unit, auto number) {
    std::vector<std::string> row{std::move(name)};
    for (const auto& one : peaks) row.push_back(decimal(number(sums_of(time, one)), digits) + unit);
    table.add(std::move(row));
  };
  const auto micro_batches = static_cast<double>(time.micro_batches);
  const double samples = samples_of(time);
  add("forward pass of a micro-batch", 3, " ms",
      [&](const Sums& sums) { return 1e3 * sums.forward / micro_batches; });
  add("backward pass of a micro-batch", 3, " ms",
      [&](const Sums& sums) { return 1e3 * sums.backward / micro_batches; });
  add("a micro-batch", 3, " ms",
      [&](const Sums& sums) { return 1e3 * (sums.forward + sums.backward) / micro_batches; });
  add("end of the step", 3, " ms", [&](const Sums& sums) { return 1e3 * sums.end; });
  add(time.devices == 1 ? "a step" : "a step, if no GPU ever waits", 3, " ms",
      [&](const Sums& sums) { return 1e3 * step_of(time, sums); });
  add("samples/s at most", 1, "", [&](const Sums& sums) { return samples / step_of(time, sums); });
  if (time.tokens > 0)
    add("tokens/s at most", 0, "", [&](const Sums& sums) {
      return samples * static_cast<double>(time.tokens) / step_of(time, sums);
    });
  add("share of the datasheet's rate", 1, " %",
      [&](const Sums& sums) { return 100 * share_of_peak(time, sums); });
  return table.text();
}

Value calls_value(const std::vector<KernelCalls>& calls, std::span<const CardPeaks> peaks) {
  Value::List list;
  for (const auto& [call, times] : calls) {
    Value::List sizes;
    for (const auto size : call.sizes) sizes.emplace_back(size);
    Value value;
    value.set("kernel", call.kernel);
    value.set("sizes", std::move(sizes));
    value.set("times", times);
    value.set("bytes", call.bytes);
    value.set("operations", call.operations);
    value.set("seconds", peaks[0].seconds(call));
    if (peaks.size() > 1) value.set("measured_seconds", peaks[1].seconds(call));
    list.push_back(std::move(value));
  }
  return list;
}

Value sums_value(const StepTime& time, const CardPeaks& peaks) {
  const Sums sums = sums_of(time, peaks);
  const double step = step_of(time, sums), samples = samples_of(time);
  Value value;
  value.set("source", peaks.source);
  value.set("bytes_per_second", peaks.bytes);
  value.set("operations_per_second", peaks.operations(factors_of(time.precision)));
  value.set("forward_seconds", sums.forward / static_cast<double>(time.micro_batches));
  value.set("backward_seconds", sums.backward / static_cast<double>(time.micro_batches));
  value.set("end_seconds", sums.end);
  value.set("step_seconds", step);
  value.set("samples_per_second", samples / step);
  if (time.tokens > 0)
    value.set("tokens_per_second", samples * static_cast<double>(time.tokens) / step);
  value.set("share_of_peak", share_of_peak(time, sums));
  return value;
}

}  // namespace

Result<StepTime> step_time(const config::RunConfig& config, const RunSetup& setup,
                           const Card& card) {
  assert(is_on_gpus(config));
  if (auto good = can_model(config, setup.precision); !good) return good.error();
  const auto request = nominal_request(config, setup, MemoryOf::elsewhere);
  if (!request) return request.error();
  const auto plan = sched::make_plan(*request);
  if (!plan) return plan.error();

  StepTime time{.card = card,
                .precision = setup.precision,
                .micro = setup.micro,
                .micro_batches = request->micro_batches,
                .tokens = setup.of_tokens() ? setup.train->shape().input.count() : 0,
                .devices = plan->devices(),
                .memory = 0,
                .stages = {}};
  for (const auto& seat : plan->seats)
    time.memory = std::max(time.memory, plan->memory_at(seat.position));
  const auto costs = cost_request(config, setup);
  for (std::size_t i = 0; i < plan->stages.size(); ++i) {
    const int first = plan->stages[i].first, last = plan->stages[i].last;
    const bool is_recomputed = config.pipeline.recompute.in(static_cast<int>(i));
    auto calls =
        models::step_calls(setup.model,
                           {.units = {first, last},
                            .keep = is_recomputed ? models::Keep::input : models::Keep::everything,
                            .micro_batches = request->micro_batches,
                            .groups = request->groups},
                           costs);
    if (!calls) return calls.error();
    const auto name_of = [&](int unit) {
      return setup.model.units[static_cast<std::size_t>(unit)].name;
    };
    std::string units = name_of(first);
    if (last - first > 1) units += " .. " + name_of(last - 1);
    time.stages.push_back({std::move(units), std::move(*calls)});
  }
  return time;
}

std::string to_table(const StepTime& time, Detail detail) {
  const auto peaks = peaks_of(time);
  std::string text = std::string(time.card.title) + ", " + std::string(to_string(time.precision)) +
                     ", " + counted(time.micro_batches, "micro-batch", "es") + " of " +
                     counted(time.micro, "sample") + ", " + counted(time.stages.size(), "stage") +
                     " on " + counted(time.devices, "GPU") + "\n";
  text += "The fullest GPU holds " + sched::show(time.memory) + ".\n";
  for (const auto& one : peaks) text += title_of(one) + "\n";
  text +=
      "A kernel takes the longer of bytes / bandwidth and operations / rate. Nothing else is in "
      "the model.\n";
  if (detail == Detail::kernels)
    for (std::size_t i = 0; i < time.stages.size(); ++i)
      text += "\nstage " + std::to_string(i) + " (" + time.stages[i].units + ")\n" +
              kernels_table(time.stages[i], peaks);
  return text + "\n" + sums_table(time, peaks);
}

Value to_value(const StepTime& time, Detail detail) {
  const auto peaks = peaks_of(time);
  Value value;
  value.set("device", time.card.name);
  value.set("precision", to_string(time.precision));
  value.set("micro", time.micro);
  value.set("micro_batches", time.micro_batches);
  value.set("devices", time.devices);
  value.set("memory_bytes", time.memory);
  value.set("operations", model_operations(time));
  value.set("datasheet", sums_value(time, peaks[0]));
  if (peaks.size() > 1) value.set("measured", sums_value(time, peaks[1]));
  if (detail == Detail::sums) return value;
  Value::List stages;
  for (const auto& [units, calls] : time.stages) {
    Value stage;
    stage.set("units", units);
    stage.set("forward", calls_value(calls.forward, peaks));
    stage.set("backward", calls_value(calls.backward, peaks));
    stage.set("end", calls_value(calls.end, peaks));
    stages.push_back(std::move(stage));
  }
  value.set("stages", std::move(stages));
  return value;
}

}  // namespace troupe::apps
