#include "actors/decide/records.h"

#include <algorithm>
#include <utility>

#include "storage/files/records.h"

namespace troupe::actors::decide {

Remembered remember(const std::vector<Record>& records) {
  Remembered found;
  std::vector<Life> lives;
  std::vector<std::string> names;
  std::uint64_t begun = 0;
  for (const auto& record : records) {
    found.term = std::max(found.term, record.term);
    // The first record of a run names the last attempt of an earlier run of its name.
    found.attempt = std::max(found.attempt, record.attempt);
    switch (record.kind) {
      case Record::Kind::planned:
        found.has_planned = true;
        found.led.clear();
        lives = record.lives;
        names = record.names;
        break;
      case Record::Kind::begun:
        begun = record.attempt;
        found.led = names;
        break;
      case Record::Kind::aborted:
        if (record.attempt == begun) found.led.clear();
        break;
      case Record::Kind::dead:
        for (const Life life : record.lives)
          if (std::ranges::find(lives, life) != lives.end()) found.led.clear();
        break;
      case Record::Kind::term:
      case Record::Kind::strike:
        break;
    }
  }
  return found;
}

Journal read_journal(std::string_view text) {
  const auto found = storage::read_records(text);
  Journal journal{.records = {}, .is_torn = found.is_torn, .flaw = found.flaw};
  for (const auto& known : found.good) {
    auto record = transport::from_value<Record>(known.value, "line " + std::to_string(known.line));
    if (record)
      journal.records.push_back(std::move(*record));
    else if (journal.flaw.empty())
      journal.flaw = record.error().text;
  }
  return journal;
}

}  // namespace troupe::actors::decide
