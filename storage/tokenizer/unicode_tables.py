"""Prints unicode_tables.cpp: the letters and numbers of Unicode, as Python's unicodedata knows them."""

import sys
import unicodedata


def ranges(initial):
    found = []
    for point in range(sys.maxunicode + 1):
        if unicodedata.category(chr(point))[0] != initial:
            continue
        if found and found[-1][1] == point - 1:
            found[-1][1] = point
        else:
            found.append([point, point])
    return found


def table(name, rows):
    print(f"constexpr CodePoints {name}_rows[] = {{")
    print(", ".join(f"{{0x{first:x}, 0x{last:x}}}" for first, last in rows))
    print("};")


print(f"// Made by unicode_tables.py from Unicode {unicodedata.unidata_version}; clang-format follows.")
print('#include "storage/tokenizer/unicode.h"\n')
print("namespace troupe::storage {\nnamespace {\n")
table("letter", ranges("L"))
print()
table("number", ranges("N"))
print("\n}  // namespace\n")
print("const std::span<const CodePoints> letters = letter_rows;")
print("const std::span<const CodePoints> numbers = number_rows;")
print("\n}  // namespace troupe::storage")
