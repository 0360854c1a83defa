#include "apps/run/schedule_file.h"

#include "core/json.h"
#include "schedules/formats/csv.h"
#include "schedules/formats/json_form.h"
#include "schedules/generators/registry.h"
#include "schedules/plan/plan.h"
#include "schedules/text.h"

namespace troupe::apps {

Result<schedules::Schedule> read_schedule(storage::Files& files, const std::string& path) {
  const auto bytes = files.read(path);
  if (!bytes) return bytes.error();
  const auto parsed = [&]() -> Result<schedules::Schedule> {
    if (path.ends_with(".csv")) return schedules::parse_csv(bytes->text(), "from-csv");
    if (!path.ends_with(".json")) return schedules::parse_schedule(bytes->text());
    const auto tree = parse_json(bytes->text());
    return tree ? schedules::schedule_from(*tree) : Result<schedules::Schedule>(tree.error());
  }();
  if (!parsed) return Error{path + ":" + parsed.error().text};
  return parsed;
}

Status check_schedule_file(storage::Files& files, const config::RunConfig::Pipeline& pipeline) {
  if (pipeline.schedule == "auto" || schedules::find_schedule(pipeline.schedule)) return Done{};
  const auto written = read_schedule(files, pipeline.schedule);
  if (!written) return within("pipeline.schedule", written.error());
  if (auto good = schedules::check_written(*written); !good)
    return within("pipeline.schedule", good.error());
  return Done{};
}

}  // namespace troupe::apps
