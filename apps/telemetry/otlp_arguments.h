#pragma once

#include <functional>
#include <memory>
#include <string>

#include "apps/telemetry/otlp_exporter.h"
#include "core/result.h"

namespace CLI {
class App;
}  // namespace CLI

namespace troupe::apps {

/// The option of a command that leads runs, for an OpenTelemetry collector. It is an option and no
/// key of the configuration: whoever submits a run must not choose where a head sends data.
struct OtlpArguments {
  std::string collector;  // "http://collector:4318"

  void add_to(CLI::App& command);
};

/// Returns null if there is no collector. `host` is the name of this machine.
Result<std::unique_ptr<OtlpExporter>> open_otlp(const OtlpArguments& arguments,
                                                const std::string& host,
                                                std::function<void(const std::string&)> say);

}  // namespace troupe::apps
