#include "core/threads/symbols.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string_view>

namespace troupe {
namespace {

/// Reads a part of a file; empty if the file has less.
std::string read_part(std::ifstream& file, std::uint64_t offset, std::uint64_t size) {
  constexpr std::uint64_t most = std::uint64_t{1} << 30;
  if (size > most) return {};
  std::string bytes(size, '\0');
  file.seekg(static_cast<std::streamoff>(offset));
  if (!file.read(bytes.data(), static_cast<std::streamsize>(size))) return {};
  return bytes;
}

template <class Entry>
std::vector<Entry> entries_of(const std::string& bytes) {
  std::vector<Entry> entries(bytes.size() / sizeof(Entry));
  std::memcpy(entries.data(), bytes.data(), entries.size() * sizeof(Entry));
  return entries;
}

/// Returns where this program is loaded.
std::uintptr_t load_address() {
  std::uintptr_t address = 0;
  // The program itself comes first.
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* into) {
        *static_cast<std::uintptr_t*>(into) = info->dlpi_addr;
        return 1;
      },
      &address);
  return address;
}

std::string demangled(const char* name) {
  int failed = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &failed), std::free);
  return failed == 0 && text ? text.get() : name;
}

/// Returns a text like "libzmq.so.5+0x1f3a0".
std::string place_in(const char* file, std::uintptr_t offset) {
  const std::string_view path = file;
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "+0x%zx", static_cast<std::size_t>(offset));
  return std::string(path.substr(path.rfind('/') + 1)) + text.data();
}

}  // namespace

Symbols Symbols::of_this_program() {
  Symbols symbols;
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const auto headers = entries_of<ElfW(Ehdr)>(read_part(file, 0, sizeof(ElfW(Ehdr))));
  if (headers.empty() || std::memcmp(headers[0].e_ident, ELFMAG, SELFMAG) != 0) return symbols;
  const auto sections = entries_of<ElfW(Shdr)>(
      read_part(file, headers[0].e_shoff, headers[0].e_shnum * sizeof(ElfW(Shdr))));
  for (const auto& section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    const auto& texts = sections[section.sh_link];
    const auto names = read_part(file, texts.sh_offset, texts.sh_size);
    if (names.empty()) continue;
    for (const auto& entry :
         entries_of<ElfW(Sym)>(read_part(file, section.sh_offset, section.sh_size))) {
      const auto kind = entry.st_info & 0xf;
      if (kind != STT_FUNC || entry.st_size == 0 || entry.st_name >= names.size()) continue;
      // The table of names ends with a zero byte, and so does each name.
      symbols.functions_.push_back(
          {entry.st_value, entry.st_value + entry.st_size, names.c_str() + entry.st_name});
    }
  }
  std::ranges::sort(symbols.functions_, {}, &Function::begin);
  return symbols;
}

std::string Symbols::name_at(std::uintptr_t address) const {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(address), &info) == 0 || !info.dli_fname)
    return place_in("?", address);
  const auto base = reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  static const std::uintptr_t own_base = [] {
    Dl_info own{};
    dladdr(reinterpret_cast<void*>(&Symbols::of_this_program), &own);
    return reinterpret_cast<std::uintptr_t>(own.dli_fbase);
  }();
  if (base == own_base) {
    const auto place = address - load_address();
    const auto after = std::ranges::upper_bound(functions_, place, {}, &Function::begin);
    if (after != functions_.begin() && place < std::prev(after)->end)
      return demangled(std::prev(after)->name.c_str());
  }
  return info.dli_sname ? demangled(info.dli_sname) : place_in(info.dli_fname, address - base);
}

std::string short_name(const std::string& name, std::size_t most) {
  constexpr std::string_view unnamed = "(anonymous namespace)";
  // A longer one stands before its beginning.
  constexpr std::array<std::string_view, 10> operators = {
      "()", "[]", "<=>", "<<", "<=", ">>", ">=", "->", "<", ">"};
  std::string text;
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const std::string_view rest = std::string_view(name).substr(i);
    if (rest.starts_with(unnamed)) {  // It says nothing to a reader.
      i += unnamed.size() - 1;
      if (rest.substr(unnamed.size()).starts_with("::")) i += 2;
      continue;
    }
    if (depth == 0 && text.ends_with("operator")) {
      // These brackets open nothing.
      const auto found = std::ranges::find_if(
          operators, [&](const auto& symbol) { return rest.starts_with(symbol); });
      if (found != operators.end()) {
        text += *found;
        i += found->size() - 1;
        continue;
      }
    }
    const char c = name[i];
    if (c == '(' || c == '<' || c == '[') {
      ++depth;
    } else if ((c == ')' || c == '>' || c == ']') && depth > 0) {
      --depth;
    } else if (depth == 0) {
      text += c;
    }
  }
  // A template's name begins with the type of its result, and a constant function ends with
  // "const".
  constexpr std::string_view constant = " const";
  if (text.ends_with(constant)) text.erase(text.size() - constant.size());
  if (const auto space = text.rfind(' '); space != text.npos && !text.ends_with("operator"))
    if (text.find("operator") == text.npos) text.erase(0, space + 1);
  if (text.empty()) text = name;
  if (text.size() > most && most > 3) text = "..." + text.substr(text.size() - most + 3);
  return text;
}

}  // namespace troupe
