#include "apps/events/terminal_width.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "core/text.h"

namespace troupe::apps {

std::optional<std::size_t> columns_of(std::FILE* stream) {
  constexpr std::size_t usual = 80;
  winsize size{};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0) return {};
  return size.ws_col > 0 ? size.ws_col : usual;
}

bool has_screen(std::FILE* stream) {
  const char* terminal = std::getenv("TERM");
  return columns_of(stream) && terminal && std::string_view(terminal) != "dumb";
}

TextForm form_of(std::FILE* stream) {
  const auto columns = columns_of(stream);
  if (!columns) return {};
  const char* refusal = std::getenv("NO_COLOR");
  return {*columns, has_screen(stream) && (!refusal || *refusal == '\0')};
}

void print_columns(const std::string& text) {
  const auto columns = columns_of(stdout);
  std::fputs((columns ? wrapped_in_columns(text, *columns) : text).c_str(), stdout);
}

void print_wrapped(const std::string& text) {
  const auto columns = columns_of(stdout);
  std::fputs((columns ? wrapped(text, *columns) : text).c_str(), stdout);
}

}  // namespace troupe::apps
