#include "apps/telemetry/otlp_arguments.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "apps/run/version.h"

namespace troupe::apps {

void OtlpArguments::add_to(CLI::App& command) {
  command.add_option("--otlp", collector,
                     "OpenTelemetry collector that gets metrics and traces of runs over HTTP in "
                     "JSON, such as http://collector:4318");
}

Result<std::unique_ptr<OtlpExporter>> open_otlp(const OtlpArguments& arguments,
                                                const std::string& host,
                                                std::function<void(const std::string&)> say) {
  if (arguments.collector.empty()) return std::unique_ptr<OtlpExporter>();
  auto collector = HttpAddress::parse(arguments.collector, OtlpExporter::usual_port);
  if (!collector) return within("--otlp", collector.error());
  OtlpOptions options{
      .collector = std::move(*collector),
      .resource = {otlp::attribute("service.name", "troupe"),
                   otlp::attribute("service.version", TROUPE_VERSION " " + std::string(commit)),
                   otlp::attribute("host.name", host)}};
  return std::make_unique<OtlpExporter>(std::move(options), std::move(say));
}

}  // namespace troupe::apps
