#include "models/description/fault.h"

namespace troupe::models {

std::string to_text(const Place& place, const LocalPosition& local) {
  if (place.position.column <= 0) return place.path;
  const auto position = local ? local(place.position) : place.position;
  return std::to_string(position.line) + ":" + std::to_string(position.column);
}

std::string message_of(const Fault& fault, const LocalPosition& local) {
  if (fault.maker.empty()) return fault.message;
  return fault.message + ", made at " + to_text(fault.made_at, local) + " (" + fault.maker + ")";
}

Error error_of(const Fault& fault) {
  const auto place = to_text(fault.at);
  return {(place.empty() ? "" : place + ": ") + message_of(fault)};
}

}  // namespace troupe::models
