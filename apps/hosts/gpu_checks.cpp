#include "apps/hosts/gpu_checks.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

namespace troupe::apps {
namespace {

struct SlowDown {
  std::uint64_t bit;
  std::string_view name;
  std::string_view fix;  // Empty if somebody has chosen this limit.
};

constexpr std::uint64_t has_nothing_to_do = 0x1;

constexpr std::string_view cool_it =
    "see to its fans and the air around it, or let it take less power: nvidia-smi -pl WATTS";
constexpr std::string_view feed_it =
    "see to its power supply and its cables; nvidia-smi -q says more";

// The bits of nvmlClocksEventReason..., as NVML documents them.
constexpr std::array slow_downs = {
    SlowDown{0x002, "clocks that were set", ""},
    SlowDown{0x004, "power cap", ""},
    SlowDown{0x010, "sync boost", ""},
    SlowDown{0x100, "clocks of the display", ""},
    SlowDown{0x020, "thermal slowdown", cool_it},
    SlowDown{0x040, "hardware thermal slowdown", cool_it},
    SlowDown{0x080, "power brake", feed_it},
    // Set together with either of the two above, or alone.
    SlowDown{0x008, "hardware slowdown", feed_it},
};

/// Returns the most serious slow-down that has a fix; null if there is none.
const SlowDown* worst_of(const actors::GpuReading& gpu) {
  if (!gpu.slowed_by) return nullptr;
  for (const auto& one : slow_downs)
    if (!one.fix.empty() && std::ranges::find(*gpu.slowed_by, one.name) != gpu.slowed_by->end())
      return &one;
  return nullptr;
}

template <class... Numbers>
std::string figure(const char* format, Numbers... numbers) {
  char text[64];
  std::snprintf(text, sizeof text, format, numbers...);
  return text;
}

}  // namespace

std::vector<std::string> what_slows(std::uint64_t reasons) {
  std::vector<std::string> names;
  reasons &= ~has_nothing_to_do;
  for (const auto& one : slow_downs) {
    if ((reasons & one.bit) != 0) names.emplace_back(one.name);
    reasons &= ~one.bit;
  }
  if (reasons != 0)
    names.push_back(figure("reason 0x%llx", static_cast<unsigned long long>(reasons)));
  return names;
}

std::string trouble_of(const actors::GpuReading& gpu) {
  if (gpu.fault) return "does not answer: " + *gpu.fault;
  return worst_of(gpu) ? "is slowed by " + joined(*gpu.slowed_by) : "";
}

std::string to_text(const actors::GpuReading& gpu) {
  constexpr double gib = 1 << 30;
  std::vector<std::string> words;
  if (gpu.name) words.push_back(*gpu.name);
  if (gpu.busy) words.push_back(figure("%.0f %% busy", 100 * *gpu.busy));
  if (gpu.used && gpu.memory)
    words.push_back(figure("%.1f of %.1f GiB", static_cast<double>(*gpu.used) / gib,
                           static_cast<double>(*gpu.memory) / gib));
  if (gpu.watts) words.push_back(figure("%.0f W", *gpu.watts));
  if (gpu.megahertz) words.push_back(std::to_string(*gpu.megahertz) + " MHz");
  if (gpu.celsius) words.push_back(std::to_string(*gpu.celsius) + " C");
  if (gpu.fault) words.push_back("does not answer: " + *gpu.fault);
  const auto text = joined(words);
  const bool is_slowed = gpu.slowed_by && !gpu.slowed_by->empty();
  return is_slowed ? text + "; slowed by " + joined(*gpu.slowed_by) : text;
}

Check judge_gpu(const actors::GpuReading& gpu) {
  const std::string name = "GPU " + std::to_string(gpu.number);
  if (gpu.fault)
    return {name, Verdict::warn, to_text(gpu),
            "nvidia-smi says more; one that is lost comes back when the machine is started anew"};
  const auto* worst = worst_of(gpu);
  if (worst) return {name, Verdict::warn, to_text(gpu), std::string(worst->fix)};
  return {name, Verdict::ok, to_text(gpu), ""};
}

Check judge_gpu_driver(const Error& why, int gpus) {
  if (gpus == 0) return {"GPU driver", Verdict::skip, why.text, ""};
  return {"GPU driver", Verdict::warn, why.text + "; how its GPUs are cannot be told",
          "nvidia-smi says more; its libraries and the kernel's module must be of one version"};
}

Check judge_gpu_libraries(const Result<std::string>& libraries, const Status& compiler, int gpus) {
  const std::string name = "CUDA libraries";
  if (gpus == 0) return {name, Verdict::skip, libraries ? *libraries : libraries.error().text, ""};
  if (libraries && !compiler)
    return {name, Verdict::warn,
            *libraries + ", but " + compiler.error().text +
                "; a slower kernel in fp32 computes attention",
            "pip install nvidia-cuda-nvrtc brings it, in a folder below site-packages/nvidia that "
            "LD_LIBRARY_PATH must name"};
  if (libraries)
    return {name, Verdict::ok, *libraries + "; GPUs compute in bf16, fp16 and tf32", ""};
  return {name, Verdict::warn, libraries.error().text + "; GPUs compute in fp32 alone",
          "pip install nvidia-cublas nvidia-cudnn-cu13 brings both, in folders below "
          "site-packages/nvidia that LD_LIBRARY_PATH must name"};
}

}  // namespace troupe::apps
