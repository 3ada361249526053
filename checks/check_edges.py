"""Compares what the sources include and the targets link with checks/edges.txt, in both directions.

  check_edges.py [--links FILE] ROOT EDGES

A file belongs to the room with the longest path that it begins with. A line of EDGES is a room and the
rooms that it may use; what a room's tests may use besides stands after '|'. A '*' stands for one folder: the
line is meant for each room that there is, and uses of the same folder; what other rooms use of '*' is all of
them. FILE has what CMake knows: a line `folder: target ...` for each target, with the targets of this project
that it links.
"""

import argparse
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.MULTILINE)


def read_edges(path):
    rooms = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        text = line.split("#")[0].strip()
        if not text:
            continue
        room, colon, rest = text.partition(":")
        if not colon:
            raise SystemExit(f"{path}:{number}: a line is 'room: rooms it may use | rooms its tests may use'")
        sources, _, tests = rest.partition("|")
        rooms[room.strip()] = (set(sources.split()), set(tests.split()))
    return rooms


# {room: (line, {used: as it is written}, {used by tests: as it is written})}
def expand(lines, folders):
    names = {}
    for line in lines:
        pattern = re.compile(re.escape(line).replace(r"\*", "([^/]+)"))
        found = {f: m.group(1) for f in folders if (m := pattern.fullmatch(f))} if "*" in line else {line: None}
        names[line] = found

    def used(targets, star):
        plain = {target: target for target in targets if "*" not in target}
        if star:
            return plain | {target.replace("*", star): target for target in targets if "*" in target}
        return plain | {room: target for target in targets if "*" in target for room in names[target]}

    return {room: (line, *(used(targets, star) for targets in lines[line]))
            for line in lines for room, star in names[line].items()}


def is_test(path):
    return "/tests/" in path or path.endswith("_test.cc")


class Tree:
    def __init__(self, root, lines):
        self.root = root
        listed = [p.relative_to(root).as_posix() for p in root.rglob("*") if p.suffix in (".h", ".cc", ".in")]
        self.files = {f for f in listed if not f.startswith(("build/", "."))}
        folders = {parent.as_posix() for f in self.files for parent in pathlib.PurePosixPath(f).parents}
        self.uses = expand(lines, folders)
        self.rooms = sorted(self.uses, key=len, reverse=True)

    def room_of(self, path):
        return next((room for room in self.rooms if path.startswith(room + "/")), None)

    # As the compiler would find it: beside the includer, by its path from the root, among the public
    # headers, or in the private folder of a room.
    def resolve(self, includer, name):
        beside = (pathlib.PurePosixPath(includer).parent / name).as_posix()
        for candidate in (beside, name):
            if candidate in self.files:
                return candidate
        found = {f for f in self.files if f.endswith(("/include/" + name, "/src/" + name))}
        own = {f for f in found if self.room_of(f) == self.room_of(includer)}
        return min(own or found, default=None)


def edges_of_includes(tree):
    for path in sorted(tree.files):
        room = tree.room_of(path)
        if room is None:
            yield None, None, path, is_test(path)
            continue
        for name in INCLUDE.findall((tree.root / path).read_text()):
            target = tree.resolve(path, name)
            used = target and tree.room_of(target)
            if used and used != room:
                yield room, used, f"{path} includes {name}", is_test(path)


def edges_of_links(tree, path):
    folders, links = {}, []
    for line in path.read_text().splitlines():
        folder, target, *linked = line.split()
        folders[target] = folder + "/"
        links.append((folder + "/", target, linked))
    for folder, target, linked in links:
        room = tree.room_of(folder)
        for name in linked:
            used = folders.get(name) and tree.room_of(folders[name])
            if room and used and used != room:
                test = is_test(folder) or target.endswith("_test")
                yield room, used, f"target {target} links {name}", test


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--links", type=pathlib.Path)
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("edges", type=pathlib.Path)
    args = parser.parse_args()

    lines = read_edges(args.edges)
    tree = Tree(args.root, lines)
    found = list(edges_of_includes(tree))
    built = set()
    if args.links:
        found += edges_of_links(tree, args.links)
        built = {tree.room_of(line.split()[0] + "/") for line in args.links.read_text().splitlines()}

    problems, used = [], set()
    for room, target, why, test in found:
        if room is None:
            problems.append(f"{why} is in no room")
            continue
        line, sources, tests = tree.uses[room]
        if target in sources:
            used.add((line, sources[target], False))
        elif test and target in tests:
            used.add((line, tests[target], True))
        else:
            problems.append(f"{room} must not use {target}: {why}")
    for room, (sources, tests) in lines.items():
        if args.links and not any(room == line and each in built for each, (line, _, _) in tree.uses.items()):
            continue  # not in this build, and what only its links need cannot be seen
        for target in sorted(sources):
            if (room, target, False) not in used:
                problems.append(f"{args.edges.name}: {room} does not use {target} any more")
        for target in sorted(tests):
            if (room, target, True) not in used:
                problems.append(f"{args.edges.name}: the tests of {room} do not use {target} any more")
    for problem in problems:
        print(problem)
    print(f"{len(tree.files)} files in {len(tree.uses)} rooms, {len(problems)} problems")
    return 1 if problems or not tree.files else 0


sys.exit(main())
