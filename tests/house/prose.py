"""Holds comments, pages and commit subjects to the rules of CONTRIBUTING.md.

    prose.py ROOT [--list FOLDER]

Prints a line for each folder and fails if a number is above its limit in prose_limits.txt. Limits
may only fall. --list prints the place of every comment in FOLDER that begins without a subject.
"""

import pathlib
import re
import subprocess
import sys

HEADLESS = set("Of What Who Where By So Likewise That Those Whose Which Else".split())
SOURCES = {".h", ".cpp", ".cu", ".cuh", ".c"}
WIDEST_LINE = 100
LONGEST_SUBJECT = 72
NOT_IMPERATIVE = set("a an the of what who where by so no not more less all".split())
VERBS_ON_S = set("pass process address focus express compress suppress discuss access".split())


def git(root, *words):
    """Runs git whoever owns the repository."""
    command = ["git", "-c", "safe.directory=*", "-C", root, *words]
    return subprocess.run(command, capture_output=True, text=True)


def tracked(root):
    out = git(root, "ls-files", "-z")
    if out.returncode != 0:
        sys.exit(f"{root}: wanted a git repository: {out.stderr.strip()}")
    return [pathlib.Path(name) for name in out.stdout.split("\0") if name]


def comment_of(line):
    """Returns the text of the line's comment and whether the comment is alone on its line."""
    if line.startswith("}  // namespace"):
        return None, False
    alone = re.match(r"\s*//[/!<]*\s?(.*)", line)
    if alone:
        return alone.group(1).strip(), True
    after = re.search(r"(?<!:)//[/!<]*\s(.*)", line)
    if after and line[: after.start()].count('"') % 2 == 0:
        return after.group(1).strip(), False
    return None, False


def comment_blocks(text):
    """Yields the line number and the first line of every block of comments."""
    inside = False
    for number, line in enumerate(text.split("\n"), 1):
        comment, alone = comment_of(line)
        if not comment:
            inside = False
        elif not (alone and inside):
            yield number, comment
            inside = True


def headless_comments(root, files):
    """Returns by folder the number of blocks and the places of those without a subject."""
    found = {}
    for file in files:
        if file.suffix not in SOURCES:
            continue
        blocks, places = found.setdefault(file.parts[0], [0, []])
        for number, comment in comment_blocks((root / file).read_text(encoding="utf-8")):
            blocks += 1
            word = re.match(r"\W*(\w+)", comment)
            if word and word.group(1) in HEADLESS:
                places.append(f"{file}:{number}: {comment}")
        found[file.parts[0]][0] = blocks
    return found


def wide_lines(root, files):
    """Returns the places of lines of documentation that are too wide. Tables and links may be."""
    places = []
    for file in files:
        if file.suffix != ".md" or file.name == "CHANGELOG.md":
            continue
        code = False
        for number, line in enumerate((root / file).read_text(encoding="utf-8").split("\n"), 1):
            if line.startswith("```"):
                code = not code
            free = code or line.startswith("|") or re.fullmatch(r"\S*\[.*\]\(\S+\)\S*", line.strip())
            if len(line) > WIDEST_LINE and not free:
                places.append(f"{file}:{number}: {len(line)} columns")
    return places


def bad_subject(subject):
    """Returns what is wrong with a commit's subject, or nothing."""
    if len(subject) > LONGEST_SUBJECT:
        return f"{len(subject)} characters, at most {LONGEST_SUBJECT}"
    parts = re.fullmatch(r"[\w.{},/-]+: (\S+)( .*)?", subject)
    if not parts:
        return "wanted 'folder: imperative verb ...'"
    verb = parts.group(1)
    third_person = verb.endswith("s") and verb not in VERBS_ON_S
    if verb in NOT_IMPERATIVE or third_person or verb.endswith(("ed", "ing")):
        return f"'{verb}' is no imperative verb"
    return None


def subjects(root, since):
    """Returns the subjects since the last tag, or else since a commit; nothing in a shallow clone."""
    tag = git(root, "describe", "--tags", "--abbrev=0")
    begin = tag.stdout.strip() if tag.returncode == 0 else since
    log = git(root, "log", "--no-merges", "--format=%h %s", f"{begin}..HEAD")
    return begin, log.stdout.splitlines() if log.returncode == 0 else None


def read_limits(path):
    limits = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, value = line.split()
            limits[name] = value
    return limits


def main():
    root = pathlib.Path(sys.argv[1])
    files = [file for file in tracked(root) if (root / file).is_file()]
    comments = headless_comments(root, files)
    if sys.argv[2:3] == ["--list"]:
        print("\n".join(comments[sys.argv[3]][1]))
        return 0
    limits = read_limits(pathlib.Path(__file__).with_name("prose_limits.txt"))
    failed = False

    def hold(name, found, places, said):
        nonlocal failed
        limit = int(limits.get(name, 0))
        too_many = found > limit
        failed |= too_many
        note = f"; the limit is {limit}" if too_many else f"; lower its limit to {found}" if found < limit else ""
        print(f"{said}{note}")
        if too_many:
            print("\n".join(f"  {place}" for place in places[:20]))

    for folder, (blocks, places) in sorted(comments.items()):
        share = 100 * len(places) / blocks
        hold(folder, len(places), places,
             f"headless comments in {folder}: {len(places)} of {blocks} ({share:.1f} %)")
    wide = wide_lines(root, files)
    hold("wide-lines", len(wide), wide, f"lines of pages over {WIDEST_LINE} columns: {len(wide)}")
    since, lines = subjects(root, limits["since"])
    if lines is None:
        print(f"commit subjects: skipped, {since} is not in this clone")
    else:
        bad = [f"{line}: {why}" for line in lines if (why := bad_subject(line.split(" ", 1)[1]))]
        hold("subjects", len(bad), bad, f"commit subjects since {since}: {len(bad)} of {len(lines)} are wrong")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
