#include "actors/decide/reconciler_journal.h"

#include <utility>

#include "storage/files/records.h"

namespace troupe::actors::reconciler {

Journal read_journal(std::string_view text) {
  const auto found = storage::read_records(text);
  Journal journal;
  journal.flaw = found.flaw;
  for (const auto& known : found.good) {
    auto record = transport::from_value<Record>(known.value, "line " + std::to_string(known.line));
    if (record)
      journal.read.records.push_back(std::move(*record));
    else if (journal.flaw.empty())
      journal.flaw = record.error().text;
  }
  using Health = JournalRead::Health;
  journal.read.health = !journal.flaw.empty() ? Health::damaged
                        : found.is_torn       ? Health::torn
                                              : Health::whole;
  return journal;
}

}  // namespace troupe::actors::reconciler
