#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "core/result.h"
#include "transport/wire/fields.h"

namespace troupe::transport {

/// The kind of a refusal. Scripts rely on the names.
enum class RefusalCode : std::uint8_t {
  invalid,
  not_found,
  conflict,
  forbidden,
  busy,
  unsupported,
  failed,
};

struct RefusalKind {
  RefusalCode code;
  std::string_view name;
  std::string_view help;  // One sentence.
};

inline constexpr std::array<RefusalKind, 7> refusal_kinds = {{
    {RefusalCode::invalid, "invalid",
     "The request contradicts itself or the schema, or does not fit: correct it."},
    {RefusalCode::not_found, "not_found", "No run or node has that name."},
    {RefusalCode::conflict, "conflict",
     "The current state does not allow the request: the run has ended, the name is taken, or too "
     "few nodes would be left."},
    {RefusalCode::forbidden, "forbidden",
     "The key lacks the role, or the head was started without the option that allows the request."},
    {RefusalCode::busy, "busy", "Too many requests are waiting: try again later."},
    {RefusalCode::unsupported, "unsupported", "The head does not support requests of this type."},
    {RefusalCode::failed, "failed",
     "The head tried and failed, for example because of a disk or a process."},
}};

constexpr std::array<std::string_view, refusal_kinds.size()> enum_names(RefusalCode) {
  std::array<std::string_view, refusal_kinds.size()> names;
  for (const auto& kind : refusal_kinds) names[static_cast<std::size_t>(kind.code)] = kind.name;
  return names;
}

/// Answers a message that the receiver did not carry out, with the reason.
struct Refusal {
  static constexpr std::string_view type = "error";

  RefusalCode code = RefusalCode::failed;
  std::string text;  // The whole reason, for a person.
  std::string path;  // The part of the request in dotted form: "batch.global".
  std::string hint;  // The advice alone; empty if `text` has none.

  static constexpr auto fields() {
    return std::tuple(required("code", &Refusal::code), required("message", &Refusal::text),
                      optional("path", &Refusal::path), optional("hint", &Refusal::hint));
  }
};

/// Makes a refusal. The text ends with the hint.
inline Refusal refusal(RefusalCode code, std::string path, std::string text,
                       std::string hint = {}) {
  if (!hint.empty()) text += "; " + hint;
  return {code, std::move(text), std::move(path), std::move(hint)};
}

}  // namespace troupe::transport
