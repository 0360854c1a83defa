#include "transport/control/allow_list.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <vector>

#include "core/units.h"
#include "transport/keys/keys.h"

namespace troupe::transport {
namespace {

constexpr std::string_view blanks = " \t\r";
constexpr std::size_t longest_name = 64;
constexpr std::uintmax_t largest_file = std::uintmax_t{16} << 20;

std::vector<std::string> words_of(std::string_view line, std::string_view separators) {
  std::vector<std::string> words;
  for (std::size_t at = line.find_first_not_of(separators); at != std::string_view::npos;) {
    const auto end = std::min(line.find_first_of(separators, at), line.size());
    words.emplace_back(line.substr(at, end - at));
    at = line.find_first_not_of(separators, end);
  }
  return words;
}

/// Parses one line. The error does not contain the place.
Result<std::pair<std::string, AllowList::Host>> parse_line(const std::vector<std::string>& words) {
  if (words.size() != 3)
    return Error{"found " + std::to_string(words.size()) +
                 (words.size() == 1 ? " word" : " words") +
                 ", wanted three: host name, roles, public key"};
  AllowList::Host host{words[0], {}};
  if (!is_host_name(host.name))
    return Error{
        "the host name has characters other than letters, digits, '.', '_' and '-', or "
        "more than " +
        std::to_string(longest_name)};
  for (const auto& word : words_of(words[1], ",")) {
    const auto role = parse_role(word);
    if (!role || !all_dialers.has(*role))
      return Error{"'" + word +
                   "' is no role; wanted node, operator, viewer or daemon, with commas between"};
    host.roles.add(*role);
  }
  if (host.roles.empty()) return Error{"there is no role; wanted node, operator, viewer or daemon"};
  if (!is_key(words[2]))
    return Error{"'" + words[2] +
                 "' is no public key; wanted the 40 characters that `troupe keys` "
                 "prints"};
  return std::pair(words[2], host);
}

}  // namespace

bool is_host_name(std::string_view text) {
  return !text.empty() && text.size() <= longest_name && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

Result<AllowList> AllowList::parse(std::string_view text, const std::string& name) {
  AllowList list;
  std::map<std::string, int> line_of_key;
  std::string errors;
  int number = 0;
  const auto fail = [&](const std::string& what) {
    if (!errors.empty()) errors += '\n';
    errors += name + ":" + std::to_string(number) + ": error: " + what;
  };
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto words = words_of(text.substr(at, end - at), blanks);
    at = end + 1;
    ++number;
    if (words.empty() || words[0].starts_with('#')) continue;
    auto line = parse_line(words);
    if (!line) {
      fail(line.error().text);
      continue;
    }
    const auto [first, is_new] = line_of_key.emplace(line->first, number);
    if (is_new)
      list.add(line->first, std::move(line->second));
    else
      fail("this key stands in line " + std::to_string(first->second) +
           " already; give it all its roles there");
  }
  if (!errors.empty()) return Error{errors};
  return list;
}

Result<AllowList> AllowList::read(const std::string& path) {
  struct stat facts {};
  const auto system_error = [&](const std::string& doing) {
    return Error{path + ": cannot " + doing + ": " + std::generic_category().message(errno)};
  };
  if (::stat(path.c_str(), &facts) != 0) return system_error("open");
  if (!S_ISREG(facts.st_mode)) return Error{path + ": is not a file; wanted an allow list"};
  if ((facts.st_mode & S_IWOTH) != 0)
    return Error{path +
                 ": everybody may write to this list, and so let themselves in; run: "
                 "chmod o-w " +
                 path};
  if (static_cast<std::uintmax_t>(facts.st_size) > largest_file)
    return Error{path + ": has " + size_text(static_cast<std::uint64_t>(facts.st_size)) +
                 ", wanted at most " + size_text(largest_file)};
  std::ifstream file(path, std::ios::binary);
  if (!file) return system_error("open");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return parse(text, path);
}

const AllowList::Host* AllowList::find(std::string_view public_key) const {
  const auto found = hosts_.find(public_key);
  return found == hosts_.end() ? nullptr : &found->second;
}

}  // namespace troupe::transport
