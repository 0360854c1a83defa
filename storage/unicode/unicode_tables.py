"""Prints the tables of Unicode: what the library `tokenizers` takes each character for.

The library has several versions of Unicode in it, a different one for each task: 17 for \\p{L} and
\\p{N}, 12 for normal forms, 8 for the classes of BERT. Therefore this script asks the library about
each character. Usage: unicode_tables.py classes|forms > unicode_tables.cpp|normal_form_tables.cpp
"""

import struct
import sys
import unicodedata

import regex
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def matching(pattern):
    replace = normalizers.Replace(Regex(pattern), "")
    return [ord(c) for c in CHARACTERS if replace.normalize_str(c) == ""]


def bert(**chosen):
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**{**off, **chosen})


def removed(normalizer):
    return [ord(c) for c in CHARACTERS if normalizer.normalize_str(c) == ""]


def of_words():
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.add_tokens([AddedToken("qq", single_word=True)])
    return [ord(c) for c in CHARACTERS if tokenizer.encode("qq" + c).ids[0] == 0]


def punctuation():
    splitter = pre_tokenizers.BertPreTokenizer()
    return [ord(c) for c in CHARACTERS if len(splitter.pre_tokenize_str(f"a{c}b")) == 3]


def digits():
    splitter = pre_tokenizers.Digits(True)
    return [ord(c) for c in CHARACTERS if len(splitter.pre_tokenize_str(f"a{c}b")) == 3]


def joined():
    """Returns the characters that form a cluster with a letter before them.

    The rule for characters maps "a" to "b": it takes the whole cluster that begins with "a".
    """
    units = [0] * 1024
    units[0] = 256 << 10
    units[256 ^ ord("a")] = ord("a") | 1 << 8 | ((256 ^ ord("a")) ^ 512) << 10
    rules = struct.pack("<I1024I", 4096, *units) + b"b\0"
    normalizer = normalizers.Precompiled(rules)
    return [ord(c) for c in CHARACTERS if normalizer.normalize_str("a" + c) == "b"]


def of_cluster(kind):
    return [ord(c) for c in CHARACTERS if regex.match(rf"\p{{GCB={kind}}}", c)]


def ranges(points):
    found = []
    for point in points:
        if found and found[-1][1] == point - 1:
            found[-1][1] = point
        else:
            found.append([point, point])
    return found


def lowercase():
    """Rows of first, last, step and the distance to the lowercase letter."""
    normalizer = normalizers.Lowercase()
    rows = []
    for c in CHARACTERS:
        low = normalizer.normalize_str(c)
        if low == c or len(low) > 1:
            assert low == c or c == "\u0130"
            continue
        point, distance = ord(c), ord(low) - ord(c)
        last = rows[-1] if rows else None
        if last and last[3] == distance and last[1] == last[0] and point - last[1] in (1, 2):
            last[1], last[2] = point, point - last[1]
        elif last and last[3] == distance and last[1] != last[0] and point - last[1] == last[2]:
            last[1] = point
        else:
            rows.append([point, point, 1, distance])
    return rows


def decompositions():
    nfd, nfc = normalizers.NFD(), normalizers.NFC()
    rows = []
    for c in CHARACTERS:
        whole = nfd.normalize_str(c)
        if whole == c or 0xAC00 <= ord(c) <= 0xD7A3:
            continue
        parts = [int(part, 16) for part in unicodedata.decomposition(c).split()]
        assert nfd.normalize_str("".join(map(chr, parts))) == whole
        rows.append([ord(c), parts[0], parts[1] if len(parts) > 1 else 0,
                     int(nfc.normalize_str(whole) == c)])
    return rows


def combining():
    """Rows of first, last and class. The library has no class for marks that it does not know."""
    nfd = normalizers.NFD()
    rows = []
    for c in CHARACTERS:
        number = unicodedata.combining(c)
        is_known = number == 1 or nfd.normalize_str(c + "\u0334") != c + "\u0334"
        if number == 0 or not is_known or len(nfd.normalize_str(c)) > 1:
            continue
        if rows and rows[-1][1] == ord(c) - 1 and rows[-1][2] == number:
            rows[-1][1] = ord(c)
        else:
            rows.append([ord(c), ord(c), number])
    return rows


def table(name, kind, rows, written):
    print(f"constexpr {kind} {name}_rows[] = {{")
    print(", ".join("{" + written(row) + "}" for row in rows))
    print("};\n")


def in_hexadecimal(row):
    return ", ".join(f"0x{number:x}" for number in row)


TABLES = {
    "classes": [
        ("letters", "CodePoints", lambda: ranges(matching(r"\p{L}")), in_hexadecimal),
        ("numbers", "CodePoints", lambda: ranges(matching(r"\p{N}")), in_hexadecimal),
        ("digits", "CodePoints", lambda: ranges(digits()), in_hexadecimal),
        ("of_words", "CodePoints", lambda: ranges(of_words()), in_hexadecimal),
        ("punctuation", "CodePoints", lambda: ranges(punctuation()), in_hexadecimal),
        ("controls", "CodePoints", lambda: ranges(removed(bert(clean_text=True))), in_hexadecimal),
        ("joined", "CodePoints", lambda: ranges(joined()), in_hexadecimal),
        ("joining", "CodePoints", lambda: ranges(of_cluster("Prepend")), in_hexadecimal),
        ("alone", "CodePoints", lambda: ranges(of_cluster("Control")), in_hexadecimal),
    ],
    "forms": [
        ("accents", "CodePoints", lambda: ranges(removed(bert(strip_accents=True))),
         in_hexadecimal),
        ("capitals", "Capitals", lowercase,
         lambda row: f"0x{row[0]:x}, 0x{row[1]:x}, {row[2]}, {row[3]}"),
        ("decompositions", "Decomposition", decompositions,
         lambda row: in_hexadecimal(row[:3]) + (", true" if row[3] else ", false")),
        ("combining", "Combining", combining, lambda row: f"0x{row[0]:x}, 0x{row[1]:x}, {row[2]}"),
    ],
}

print(f"// Made by unicode_tables.py from tokenizers {tokenizers.__version__}; clang-format follows.")
print('#include "storage/unicode/unicode.h"\n')
print("namespace troupe::storage {\nnamespace {\n")
for name, kind, rows, written in TABLES[sys.argv[1]]:
    table(name, kind, rows(), written)
print("}  // namespace\n")
for name, kind, _, _ in TABLES[sys.argv[1]]:
    print(f"const std::span<const {kind}> {name} = {name}_rows;")
print("\n}  // namespace troupe::storage")
