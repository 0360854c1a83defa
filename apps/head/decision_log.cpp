#include "apps/head/decision_log.h"

#include <memory>
#include <utility>
#include <vector>

#include "actors/decide/records.h"
#include "storage/files/records.h"
#include "transport/wire/fields.h"

namespace troupe::apps {

namespace {

std::string path_in(const std::string& folder) { return folder + "/decisions"; }

/// Returns the decisions in a folder: none if there is no file.
Result<actors::decide::Journal> read_decisions(storage::Files& files, const std::string& folder) {
  const std::string path = path_in(folder);
  const auto there = files.exists(path);
  if (!there.ok()) return there.error();
  if (!*there) return actors::decide::Journal{};
  const auto bytes = storage::read_into_memory(files, path);
  if (!bytes) return bytes.error();
  return actors::decide::read_journal(bytes->text());
}

}  // namespace

Result<actors::DecisionLog> open_decision_log(storage::Files& files, const std::string& folder,
                                              const std::string& earlier) {
  const std::string path = path_in(folder);
  actors::DecisionLog decisions;
  auto journal = read_decisions(files, folder);
  if (!journal) return journal.error();
  if (!journal->flaw.empty())
    return Error{path + ": " + journal->flaw +
                 "; put a copy of it there, or move it away: then the run goes on as if its " +
                 "nodes were new"};
  decisions.before.is_torn = journal->is_torn;
  decisions.before.records = std::move(journal->records);
  if (!earlier.empty()) {
    const auto before = read_decisions(files, earlier);
    if (!before) return before.error();
    decisions.before.earlier_attempts = actors::decide::remember(before->records).attempt;
  }
  auto opened = storage::RecordWriter::open(files, path);
  if (!opened) return opened.error();
  decisions.write = [writer = std::make_shared<storage::RecordWriter>(std::move(*opened))](
                        const std::vector<actors::decide::Record>& records) {
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
