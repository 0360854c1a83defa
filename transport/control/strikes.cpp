#include "transport/control/strikes.h"

#include <algorithm>

namespace troupe::transport {

Strikes::Verdict Strikes::strike(const std::string& subject, TimePoint now) {
  auto found = records_.find(subject);
  if (found != records_.end() && is_over(found->second, now)) {
    records_.erase(found);
    found = records_.end();
  }
  if (found == records_.end()) {
    if (records_.size() >= rules_.subjects) make_room(now);
    found = records_.emplace(subject, Record{{}, now, now, 0}).first;
  }
  auto& record = found->second;
  record.last = now;
  // Whoever is out cannot be put out again.
  if (record.quarantines > 0 && now < record.until) return Verdict::out;
  while (!record.recent.empty() && now - record.recent.front() >= rules_.within)
    record.recent.pop_front();
  record.recent.push_back(now);
  if (record.recent.size() < rules_.most) return Verdict::noted;

  Duration time = rules_.quarantine;
  for (int i = 0; i < record.quarantines && time < rules_.longest; ++i) time *= 2;
  record.until = now + std::min(time, rules_.longest);
  ++record.quarantines;
  record.recent.clear();
  return Verdict::out;
}

std::optional<Duration> Strikes::quarantine_left(const std::string& subject, TimePoint now) const {
  const auto found = records_.find(subject);
  if (found == records_.end() || found->second.quarantines == 0 || now >= found->second.until)
    return std::nullopt;
  return found->second.until - now;
}

bool Strikes::is_over(const Record& record, TimePoint now) const {
  return now - std::max(record.last, record.until) >= std::max(rules_.longest, rules_.within);
}

void Strikes::make_room(TimePoint now) {
  std::erase_if(records_, [&](const auto& entry) { return is_over(entry.second, now); });
  if (records_.size() < rules_.subjects) return;
  const auto oldest =
      std::ranges::min_element(records_, {}, [](const auto& entry) { return entry.second.last; });
  records_.erase(oldest);
}

}  // namespace troupe::transport
