#include "apps/hosts/nvml.h"

#include <dlfcn.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "apps/hosts/gpu_checks.h"

namespace troupe::apps {
namespace {

constexpr const char* nvml_name = "libnvidia-ml.so.1";

/// Returns whether the library does not exist, as opposed to being unusable.
bool is_missing(const std::string& why) {
  return why.starts_with(std::string(nvml_name) + ":") &&
         why.find("No such file or directory") != std::string::npos;
}

}  // namespace

/// The part of NVML's documented binary interface that is used here. NVML's header comes with the
/// CUDA toolkit, which a build machine may lack.
struct Nvml::Library {
  using Outcome = int;   // nvmlReturn_t
  using Handle = void*;  // nvmlDevice_t
  struct Rates {         // nvmlUtilization_t, percent.
    unsigned gpu = 0;
    unsigned memory = 0;
  };
  struct Memory {  // nvmlMemory_t, bytes.
    unsigned long long total = 0;
    unsigned long long free = 0;
    unsigned long long used = 0;
  };
  static constexpr Outcome success = 0, gpu_is_lost = 15;
  static constexpr int clock_of_multiprocessors = 1, sensor_of_gpu = 0;

  void* file = nullptr;
  bool has_begun = false;
  Outcome (*begin)() = nullptr;
  Outcome (*end)() = nullptr;
  const char* (*text_of)(Outcome) = nullptr;
  Outcome (*count)(unsigned*) = nullptr;
  Outcome (*handle_of)(unsigned, Handle*) = nullptr;
  // Optional functions; without one its value is absent.
  Outcome (*name_of)(Handle, char*, unsigned) = nullptr;
  Outcome (*rates_of)(Handle, Rates*) = nullptr;
  Outcome (*memory_of)(Handle, Memory*) = nullptr;
  Outcome (*power_of)(Handle, unsigned*) = nullptr;  // Milliwatts.
  Outcome (*clock_of)(Handle, int, unsigned*) = nullptr;
  Outcome (*temperature_of)(Handle, int, unsigned*) = nullptr;
  Outcome (*reasons_of)(Handle, unsigned long long*) = nullptr;

  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (has_begun) (void)end();
    if (file) dlclose(file);
  }

  template <class Function>
  bool find(const char* name, Function*& into) const {
    into = reinterpret_cast<Function*>(dlsym(file, name));
    return into != nullptr;
  }

  /// Returns the name of the first missing required function; null if all exist.
  const char* find_all() {
    if (!find("nvmlInit_v2", begin)) return "nvmlInit_v2";
    if (!find("nvmlShutdown", end)) return "nvmlShutdown";
    if (!find("nvmlErrorString", text_of)) return "nvmlErrorString";
    if (!find("nvmlDeviceGetCount_v2", count)) return "nvmlDeviceGetCount_v2";
    if (!find("nvmlDeviceGetHandleByIndex_v2", handle_of)) return "nvmlDeviceGetHandleByIndex_v2";
    find("nvmlDeviceGetName", name_of);
    find("nvmlDeviceGetUtilizationRates", rates_of);
    find("nvmlDeviceGetMemoryInfo", memory_of);
    find("nvmlDeviceGetPowerUsage", power_of);
    find("nvmlDeviceGetClockInfo", clock_of);
    find("nvmlDeviceGetTemperature", temperature_of);
    if (!find("nvmlDeviceGetCurrentClocksEventReasons", reasons_of))
      // The name in drivers before 2023.
      find("nvmlDeviceGetCurrentClocksThrottleReasons", reasons_of);
    return nullptr;
  }

  Error error_of(Outcome outcome) const {
    const char* text = text_of(outcome);
    return {text ? text : "error " + std::to_string(outcome)};
  }

  template <class Answer, class Function, class... More>
  std::optional<Answer> ask(actors::GpuReading& reading, Function* function, Handle gpu,
                            More... more) const {
    if (!function) return std::nullopt;
    Answer answer{};
    const Outcome outcome = function(gpu, more..., &answer);
    if (outcome == gpu_is_lost) reading.fault = error_of(outcome).text;
    return outcome == success ? std::optional(answer) : std::nullopt;
  }

  actors::GpuReading read(unsigned number) const {
    actors::GpuReading reading;
    reading.number = static_cast<int>(number);
    Handle gpu = nullptr;
    if (const Outcome outcome = handle_of(number, &gpu); outcome != success) {
      reading.fault = error_of(outcome).text;
      return reading;
    }
    std::array<char, 96> name{};
    if (name_of && name_of(gpu, name.data(), name.size() - 1) == success)
      reading.name = name.data();
    if (const auto rates = ask<Rates>(reading, rates_of, gpu)) reading.busy = rates->gpu / 100.0;
    if (const auto memory = ask<Memory>(reading, memory_of, gpu)) {
      reading.used = static_cast<std::int64_t>(memory->used);
      reading.memory = static_cast<std::int64_t>(memory->total);
    }
    if (const auto power = ask<unsigned>(reading, power_of, gpu)) reading.watts = *power / 1000.0;
    reading.megahertz = ask<unsigned>(reading, clock_of, gpu, clock_of_multiprocessors);
    reading.celsius = ask<unsigned>(reading, temperature_of, gpu, sensor_of_gpu);
    if (const auto reasons = ask<unsigned long long>(reading, reasons_of, gpu))
      reading.slowed_by = what_slows(*reasons);
    return reading;
  }
};

Nvml::Nvml(std::unique_ptr<Library> library) : library_(std::move(library)) {}
Nvml::Nvml(Nvml&& other) noexcept = default;
Nvml& Nvml::operator=(Nvml&& other) noexcept = default;
Nvml::~Nvml() = default;

Result<Nvml> Nvml::open() {
  auto library = std::make_unique<Library>();
  library->file = dlopen(nvml_name, RTLD_NOW | RTLD_LOCAL);
  if (!library->file) {
    const char* said = dlerror();
    const std::string why = said ? said : "cannot be loaded";
    if (is_missing(why)) return Nvml(nullptr);
    return Error{why};
  }
  if (const char* lacks = library->find_all())
    return Error{std::string(nvml_name) + ": has no " + lacks};
  if (const auto outcome = library->begin(); outcome != Library::success)
    return within(nvml_name, library->error_of(outcome));
  library->has_begun = true;
  return Nvml(std::move(library));
}

Result<std::vector<actors::GpuReading>> Nvml::read() const {
  std::vector<actors::GpuReading> readings;
  if (!library_) return readings;
  unsigned count = 0;
  if (const auto outcome = library_->count(&count); outcome != Library::success)
    return within(nvml_name, library_->error_of(outcome));
  for (unsigned number = 0; number < count; ++number) readings.push_back(library_->read(number));
  return readings;
}

}  // namespace troupe::apps
