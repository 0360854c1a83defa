#include "apps/head/decision_log.h"

#include <memory>
#include <utility>
#include <vector>

#include "actors/decide/reconciler_journal.h"
#include "storage/files/records.h"
#include "transport/wire/fields.h"

namespace troupe::apps {

Result<actors::DecisionLog> open_decision_log(storage::Files& files, const std::string& folder) {
  const std::string path = folder + "/decisions";
  actors::DecisionLog decisions;
  const auto there = files.exists(path);
  if (!there.ok()) return there.error();
  if (*there) {
    const auto bytes = storage::read_into_memory(files, path);
    if (!bytes) return bytes.error();
    auto journal = actors::reconciler::read_journal(bytes->text());
    if (!journal.flaw.empty())
      return Error{path + ": " + journal.flaw +
                   "; put a copy of it there, or move it away: then the run goes on as if its " +
                   "nodes were new"};
    decisions.before = std::move(journal.read);
  }
  auto opened = storage::RecordWriter::open(files, path);
  if (!opened) return opened.error();
  decisions.write = [writer = std::make_shared<storage::RecordWriter>(std::move(*opened))](
                        const std::vector<actors::reconciler::Record>& records) {
    Status written = Done{};
    for (const auto& record : records)
      if (written) written = writer->append(transport::to_value(record));
    if (written) written = writer->sync();
    if (!written) (void)writer->take_back();
    return written;
  };
  return decisions;
}

}  // namespace troupe::apps
