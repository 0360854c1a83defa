#include "schedules/schedule.h"

#include "schedules/text.h"

namespace troupe::schedules {

char letter(Kind kind) {
  switch (kind) {
    case Kind::forward:
      return 'F';
    case Kind::backward:
      return 'B';
    case Kind::backward_input:
      return 'I';
    case Kind::backward_weight:
      return 'W';
    case Kind::recompute:
      return 'R';
    case Kind::give:
      return 'A';
    case Kind::update:
      return 'O';
    case Kind::gather:
      return 'G';
    case Kind::release:
      return 'U';
  }
  return '?';
}

std::string to_string(Action action) {
  std::string text = std::to_string(action.stage) + letter(action.kind);
  if (has_micro_batch(action.kind) || (action.flags & Action::numbered))
    text += std::to_string(action.micro_batch);
  if (action.flags & Action::floating) text += '~';
  if (action.flags & Action::checkpointed) text += '\'';
  return text;
}

std::string to_string(const Lane& lane) {
  std::string text;
  bool grouped = false;
  for (const Action action : lane) {
    if (grouped)
      text += '+';
    else if (!text.empty())
      text += ' ';
    const bool goes_on = action.flags & Action::with_next;
    if (goes_on && !grouped) text += '(';
    text += to_string(action);
    if (grouped && !goes_on) text += ')';
    grouped = goes_on;
  }
  return text;
}

Digest digest(const Schedule& schedule) { return digest_of(to_text(schedule)); }

}  // namespace troupe::schedules
