#include "schedules/lane_parser.h"

#include <optional>

namespace troupe::schedules {
namespace {

constexpr int max_depth = 8;
constexpr const char* codes = "one of F B I W R A O G U";

std::optional<Kind> kind_of(char code) {
  for (int kind = 0; kind <= static_cast<int>(Kind::release); ++kind)
    if (letter(static_cast<Kind>(kind)) == code) return static_cast<Kind>(kind);
  return std::nullopt;
}

bool may_be_numbered(Kind kind) { return kind == Kind::give || kind == Kind::update; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

Result<Lane> LaneParser::parse() {
  if (!items(0)) return error_;
  return std::move(lane_);
}

bool LaneParser::items(int depth) {
  while (!scanner_.at_line_end() && scanner_.peek() != '}') {
    const char next = scanner_.peek();
    if (next == '{') {
      if (!loop(depth)) return false;
    } else if (next == '(') {
      if (!group()) return false;
    } else if (is_digit(next)) {
      if (!action()) return false;
    } else {
      return fail_here("an action such as 0F1, '(' or '{'");
    }
    if (!separated()) return false;
  }
  return depth > 0 || scanner_.at_line_end() || fail_here("an action such as 0F1, '(' or '{'");
}

/// Checks that a blank, the end of the text line or the end of a loop follows an item.
bool LaneParser::separated() {
  if (scanner_.at_line_end() || scanner_.peek() == '}' || !scanner_.glued()) return true;
  return fail_here("a blank after the action");
}

bool LaneParser::action() {
  const Position place = scanner_.position();
  const auto stage = scanner_.number(0, bounds_.stages - 1, "a stage");
  if (!stage) return fail(stage.error());
  const auto kind = kind_of(scanner_.peek());
  if (!kind || !scanner_.glued()) return fail_here(codes);
  scanner_.accept(letter(*kind));
  Action action = schedules::action(*kind, *stage, 0);
  if (scanner_.peek() == '[' && scanner_.glued() && has_micro_batch(*kind)) return range(action);
  return micro_batch(action) && flags(action) && push(action, place);
}

bool LaneParser::micro_batch(Action& action) {
  const bool comes = is_digit(scanner_.peek()) && scanner_.glued();
  if (!comes && !has_micro_batch(action.kind)) return true;
  if (!comes) return fail_here("a micro-batch or '[' right after the code");
  if (!has_micro_batch(action.kind) && !may_be_numbered(action.kind))
    return fail_here("no micro-batch after G or U");
  const auto m = scanner_.number(0, bounds_.micro_batches - 1, "a micro-batch");
  if (!m) return fail(m.error());
  action.micro_batch = static_cast<std::uint32_t>(*m);
  if (!has_micro_batch(action.kind)) action.flags |= Action::numbered;
  return true;
}

bool LaneParser::flags(Action& action) {
  while (scanner_.glued() && (scanner_.peek() == '~' || scanner_.peek() == '\'')) {
    const bool floats = scanner_.peek() == '~';
    const int flag = floats ? Action::floating : Action::checkpointed;
    const Kind owner = floats ? Kind::backward_weight : Kind::forward;
    if (action.kind != owner || (action.flags & flag))
      return fail_here(floats ? "'~' once, and after a W" : "''' once, and after an F");
    action.flags |= flag;
    scanner_.accept(scanner_.peek());
  }
  return true;
}

bool LaneParser::group() {
  const Position place = scanner_.position();
  const std::size_t begin = lane_.size();
  scanner_.accept('(');
  do {
    if (!is_digit(scanner_.peek())) return fail_here("an action such as 0F1");
    const std::size_t before = lane_.size();
    if (!action()) return false;
    if (lane_.size() != before + 1)
      return fail(error_at(place, "a group holds single actions, no range"));
    if (!has_micro_batch(lane_.back().kind))
      return fail(error_at(place, "a group holds passes: F B I W R"));
    lane_.back().flags |= Action::with_next;
  } while (scanner_.accept('+'));
  if (!scanner_.accept(')')) return fail_here("'+' or ')'");
  lane_.back().flags &= ~Action::with_next;
  if (lane_.size() < begin + 2)
    return fail(error_at(place, "a group holds two actions or more, this one a single one"));
  return true;
}

bool LaneParser::range(Action first) {
  const Position place = scanner_.position();
  scanner_.accept('[');
  const std::string what = "a micro-batch";
  const auto begin = scanner_.number(0, bounds_.micro_batches - 1, what);
  if (!begin) return fail(begin.error());
  if (!scanner_.accept('.') || !scanner_.accept('.')) return fail_here("'..'");
  const auto end = scanner_.number(0, bounds_.micro_batches - 1, what);
  if (!end) return fail(end.error());
  int step = 1;
  if (scanner_.accept(':') && !signed_number(step, "a step")) return false;
  if (!scanner_.accept(']')) return fail_here("':' and a step, or ']'");
  if (step == 0 || (step > 0 ? *end < *begin : *end > *begin))
    return fail(error_at(place, "this range holds nothing: from " + std::to_string(*begin) +
                                    " one does not come to " + std::to_string(*end) +
                                    " in steps of " + std::to_string(step)));
  for (int m = *begin; step > 0 ? m <= *end : m >= *end; m += step) {
    first.micro_batch = static_cast<std::uint32_t>(m);
    if (!push(first, place)) return false;
  }
  return true;
}

bool LaneParser::loop(int depth) {
  const Position place = scanner_.position();
  if (depth == max_depth)
    return fail(error_at(place, "loops are nested deeper than " + std::to_string(max_depth)));
  const std::size_t begin = lane_.size();
  scanner_.accept('{');
  if (!items(depth + 1)) return false;
  if (!scanner_.accept('}')) return fail_here("an action such as 0F1, '(', '{' or '}'");
  if (lane_.size() == begin) return fail(error_at(place, "a loop holds one action or more"));
  if (!scanner_.accept('*')) return fail_here("'*' and a count");
  const auto count = scanner_.number(1, static_cast<int>(max_actions), "a count");
  if (!count) return fail(count.error());
  int stride = 1;
  if (scanner_.accept(':') && !signed_number(stride, "a stride")) return false;
  return repeat(begin, *count, stride, place);
}

bool LaneParser::repeat(std::size_t begin, int count, int stride, Position place) {
  const std::size_t size = lane_.size() - begin;
  for (int round = 1; round < count; ++round) {
    for (std::size_t k = 0; k < size; ++k) {
      Action action = lane_[begin + k];
      if (has_micro_batch(action.kind) || (action.flags & Action::numbered)) {
        const long long m = action.micro_batch + static_cast<long long>(stride) * round;
        if (m < 0 || m >= bounds_.micro_batches)
          return fail(error_at(place, "round " + std::to_string(round) +
                                          " of this loop comes to micro-batch " +
                                          std::to_string(m) + "; there are " +
                                          std::to_string(bounds_.micro_batches)));
        action.micro_batch = static_cast<std::uint32_t>(m);
      }
      if (!push(action, place)) return false;
    }
  }
  return true;
}

bool LaneParser::push(Action action, Position place) {
  if (lane_.size() == room_)
    return fail(error_at(
        place, "here the schedule comes to more than " + std::to_string(max_actions) + " actions"));
  lane_.push_back(action);
  return true;
}

bool LaneParser::signed_number(int& number, const std::string& what) {
  const bool negative = scanner_.accept('-');
  const auto read = scanner_.number(0, max_micro_batches, what);
  if (!read) return fail(read.error());
  number = negative ? -*read : *read;
  return true;
}

bool LaneParser::fail(Error error) {
  error_ = std::move(error);
  return false;
}

}  // namespace troupe::schedules
