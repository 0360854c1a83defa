// Replaces NVIDIA's driver library: two GPUs, of which the second has no power sensor. Environment
// variables set their state. It includes no header of ours and follows NVML's documentation, so
// that it reveals mistakes in our declarations.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

enum Return : unsigned {  // nvmlReturn_t
  success = 0,
  uninitialized = 1,
  invalid_argument = 2,
  not_supported = 3,
  driver_not_loaded = 9,
  gpu_is_lost = 15,
};

struct Gpu {
  const char* name;
  unsigned busy, megahertz, celsius, milliwatts;
  unsigned long long total, used;
};

namespace {

constexpr unsigned long long gib = 1ULL << 30;
Gpu gpus[] = {{"NVIDIA H200", 97, 1755, 61, 655'400, 141 * gib, 70 * gib + gib / 2},
              {"NVIDIA A2", 12, 210, 93, 0, 16 * gib, gib}};

int begun = 0;

unsigned long long said(const char* name, unsigned long long otherwise) {
  const char* text = getenv(name);
  return text ? strtoull(text, nullptr, 0) : otherwise;
}

/// Returns the number in the file, which a test may replace atomically.
unsigned in_file(const char* path, unsigned otherwise) {
  FILE* file = path ? fopen(path, "r") : nullptr;
  if (!file) return otherwise;
  if (fscanf(file, "%u", &otherwise) != 1) fprintf(stderr, "%s has no number\n", path);
  fclose(file);
  return otherwise;
}

}  // namespace

extern "C" {

using nvmlDevice_t = Gpu*;
struct nvmlUtilization_t {
  unsigned gpu, memory;
};
struct nvmlMemory_t {
  unsigned long long total, free, used;
};

Return nvmlInit_v2() {
  const auto outcome = static_cast<Return>(said("FAKE_NVML_INIT", success));
  begun += outcome == success;
  return outcome;
}
Return nvmlShutdown() {
  --begun;
  return success;
}
const char* nvmlErrorString(Return outcome) {
  if (outcome == driver_not_loaded) return "Driver Not Loaded";
  return outcome == gpu_is_lost ? "GPU is lost" : "Unknown Error";
}

#ifndef WITHOUT_COUNT
Return nvmlDeviceGetCount_v2(unsigned* count) {
  if (begun < 1) return uninitialized;
  *count = static_cast<unsigned>(said("FAKE_NVML_GPUS", 2));
  return success;
}
#endif

Return nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* gpu) {
  if (begun < 1) return uninitialized;
  if (index >= 2) return invalid_argument;
  if (said("FAKE_NVML_LOST", 2) == index) return gpu_is_lost;
  *gpu = &gpus[index];
  return success;
}
Return nvmlDeviceGetName(nvmlDevice_t gpu, char* name, unsigned length) {
  snprintf(name, length, "%s", gpu->name);
  return success;
}
Return nvmlDeviceGetUtilizationRates(nvmlDevice_t gpu, nvmlUtilization_t* rates) {
  if (getenv("FAKE_NVML_STUCK"))
    for (;;) pause();
  *rates = {in_file(getenv("FAKE_NVML_BUSY_IN"), gpu->busy), 3};
  return success;
}
Return nvmlDeviceGetMemoryInfo(nvmlDevice_t gpu, nvmlMemory_t* memory) {
  *memory = {gpu->total, gpu->total - gpu->used, gpu->used};
  return success;
}
Return nvmlDeviceGetPowerUsage(nvmlDevice_t gpu, unsigned* milliwatts) {
  *milliwatts = 12345;  // A reader that ignores not_supported would report this number.
  if (gpu->milliwatts == 0) return not_supported;
  *milliwatts = gpu->milliwatts;
  return success;
}
Return nvmlDeviceGetClockInfo(nvmlDevice_t gpu, unsigned which, unsigned* megahertz) {
  constexpr unsigned of_multiprocessors = 1;
  *megahertz = which == of_multiprocessors ? gpu->megahertz : 5;
  return success;
}
Return nvmlDeviceGetTemperature(nvmlDevice_t gpu, unsigned sensor, unsigned* celsius) {
  if (sensor != 0) return invalid_argument;
  *celsius = gpu->celsius;
  return success;
}
// The name in drivers before 2023.
Return nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t gpu, unsigned long long* reasons) {
  constexpr unsigned long long idle = 0x1, hardware_and_its_heat = 0x48;
  *reasons = gpu == &gpus[0] ? idle : said("FAKE_NVML_REASONS", hardware_and_its_heat);
  return success;
}
}
