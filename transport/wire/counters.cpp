#include "transport/wire/counters.h"

namespace troupe::transport {

std::string_view to_string(Count count) {
  switch (count) {
    case Count::received:
      return "received";
    case Count::sent:
      return "sent";
    case Count::malformed:
      return "malformed";
    case Count::wrong_version:
      return "wrong_version";
    case Count::unknown_type:
      return "unknown_type";
    case Count::wrong_role:
      return "wrong_role";
    case Count::before_hello:
      return "before_hello";
    case Count::too_many_hellos:
      return "too_many_hellos";
    case Count::quarantined:
      return "quarantined";
    case Count::unknown_key:
      return "unknown_key";
    case Count::failed_connection:
      return "failed_connection";
    case Count::too_slow:
      return "too_slow";
    case Count::struck_off:
      return "struck_off";
    case Count::other_user:
      return "other_user";
    case Count::crowded_out:
      return "crowded_out";
    case Count::no_such_peer:
      return "no_such_peer";
  }
  return "?";
}

}  // namespace troupe::transport
