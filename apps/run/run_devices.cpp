#include "apps/run/run_devices.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "actors/device_thread.h"
#include "actors/wait.h"
#include "apps/gpu/gpu_links.h"
#include "apps/gpu/gpus.h"
#include "apps/run/run_setup.h"
#include "kernels/instructions.h"
#include "kernels/precision.h"

namespace troupe::apps {
namespace {

/// Checks that the libraries which a GPU needs for this precision are present.
Status check_libraries(kernels::Precision precision) {
  if (!kernels::is_on_tensor_cores(precision)) return Done{};
  if (const auto libraries = gpu_libraries(); !libraries)
    return Error{"precision.compute: wanted " + std::string(to_string(precision)) + ": " +
                 libraries.error().text + "; or set precision.compute = \"fp32\""};
  return Done{};
}

/// Returns how often the first GPU is opened. Devices take GPUs in turn, so it has the most
/// devices.
int times_opened(int devices, int gpus, const DevicesHere& here) {
  return (devices + gpus - 1) / gpus * (here.want_links ? 2 : 1);
}

/// Returns the number of GPUs. Fails if there are none, or too few for `devices`.
Result<int> find_gpus(int devices, const DevicesHere& here) {
  auto gpus = count_gpus();
  if (!gpus || *gpus == 0) return no_gpu(gpus ? "there is none" : gpus.error().text);
  if (auto good = check_gpu_queues(times_opened(devices, *gpus, here)); !good)
    return within("train.device", good.error());
  return gpus;
}

std::string thread_name_of(int device) {
  return std::string(actors::device_thread_prefix) + std::to_string(device);
}

std::string slow_precision_text(kernels::Precision precision, double slowness) {
  char times[32];
  std::snprintf(times, sizeof times, "%.1f", slowness);
  return "precision.compute = \"" + std::string(to_string(precision)) +
         "\": this processor has no instructions for it (it computes with " +
         std::string(to_string(kernels::instructions_in_use())) + "); products take " + times +
         " times as long as in fp32, measured here; set it to \"auto\" or \"fp32\"";
}

}  // namespace

Result<RunDevices> RunDevices::open(const config::RunConfig& config, kernels::Precision precision,
                                    const PreparedPlan& prepared_plan, const DevicesHere& here) {
  RunDevices opened;
  const auto& round = *prepared_plan.rounds.of_one_step();
  const int count = round.devices() * round.replicas;
  int how_many = 0;
  for (int device = 0; device < count; ++device) how_many += here.are_here(device) ? 1 : 0;
  const int cores = config.train.threads.value_or(here.cores);
  const bool on_gpus = is_on_gpus(config);
  Turn turn;
  turn.devices = how_many;
  if (on_gpus && how_many > 0) {
    auto found = find_gpus(how_many, here);
    if (!found) return found.error();
    for (int i = 0; i < std::min(how_many, *found); ++i)
      turn.gpus.push_back((here.first_gpu + i) % *found);
    if (auto good = check_libraries(precision); !good) return good.error();
  }
  for (int device = 0; device < count; ++device) {
    auto& executor = opened.devices_.emplace_back();
    opened.linked_.emplace_back();
    if (!here.are_here(device)) continue;
    if (!on_gpus) {
      executor =
          here.executors.open(actors::OnCores{.threads = std::max(1, cores / std::max(1, how_many)),
                                              .pace = here.pace,
                                              .name = thread_name_of(device)});
      continue;
    }
    if (auto added = opened.add_gpu(turn, config, precision, here); !added) return added.error();
    ++turn.number;
  }
  if (!on_gpus && how_many > 0 && here.slowness && !kernels::has_instructions_for(precision))
    opened.device_notes_->add(slow_precision_text(precision, here.slowness(precision)));
  const int gpus = std::max(1, static_cast<int>(turn.gpus.size()));
  const int on_one = std::max(1, (how_many + gpus - 1) / gpus);
  for (int device = 0; device < count; ++device)
    if (auto& executor = opened.devices_[static_cast<std::size_t>(device)])
      executor->memory().expect(
          static_cast<std::size_t>(prepared_plan.plan.memory_at(device % round.devices())),
          static_cast<std::size_t>(on_one));
  opened.reader_ = here.executors.open(actors::OnCores{.name = "reading"});
  return opened;
}

/// Opens the GPU of the last device in `devices_`.
Status RunDevices::add_gpu(const Turn& turn, const config::RunConfig& config,
                           kernels::Precision precision, const DevicesHere& here) {
  const int gpus = static_cast<int>(turn.gpus.size());
  const int number = turn.gpus[static_cast<std::size_t>(turn.number % gpus)];
  const auto note = [all = device_notes_](const std::string& remark) { all->add(remark); };
  auto opened = open_gpu(number, note);
  if (!opened) return within("train.device", opened.error());
  auto memory = gpu_memory(number, turn.gpus);
  if (!memory) return within("train.device", memory.error());
  Device& gpu = **opened;
  if (kernels::is_on_tensor_cores(precision))
    if (auto ready = open_tensor_cores(gpu); !ready) return within("train.device", ready.error());
  const auto exported = exported_gpu_memory(**memory);
  actors::DeviceLimits limits;
  limits.patience = config.limits.stuck_floor * actors::Allowed().usual;
  devices_.back() = here.executors.open(
      actors::OnDevice{std::move(*opened), std::move(*memory), gpus_, limits, here.pace,
                       thread_name_of(static_cast<int>(devices_.size()) - 1)});
  if (!here.want_links) return Done{};
  auto links = link_gpu({.number = number,
                         .turn = turn.number < gpus ? OnGpu::first : OnGpu::with_others,
                         .gpu = gpu,
                         .memory = devices_.back()->memory(),
                         .exported = exported,
                         .free_queues = free_gpu_queues(times_opened(turn.devices, gpus, here)),
                         .remark = note});
  linked_.back() = std::move(links.device);
  if (!links.missing.empty()) why_not_linked_ = std::move(links.missing);
  return Done{};
}

std::vector<actors::LinkedDevice*> RunDevices::linked() const {
  std::vector<actors::LinkedDevice*> all;
  for (const auto& device : linked_) all.push_back(device.get());
  return all;
}

std::vector<actors::Executor*> RunDevices::all() const {
  std::vector<actors::Executor*> here;
  for (const auto& device : devices_)
    if (device) here.push_back(device.get());
  if (reader_) here.push_back(reader_.get());
  return here;
}

}  // namespace troupe::apps
