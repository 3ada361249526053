"""Compiles and runs the examples in the documentation, and follows its links to files.

A ```cpp block is a whole source file: it is compiled against the installed library, and run if it
has a main(). The ```sh blocks of a page run one after the other in one scratch folder, with the
installed `leasehold` on the PATH; each must succeed. Blocks in other languages are not looked at.
A line `<!-- not run: reason -->` just before a block leaves it out. With --only-links nothing is
compiled or run.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

CMAKELISTS = """\
cmake_minimum_required(VERSION 3.25)
project(docs LANGUAGES CXX)
find_package(leasehold REQUIRED)
add_compile_options(-Wall -Wextra -Werror)
link_libraries(leasehold::stores leasehold::core)
foreach(adapter IN LISTS leasehold_adapters)
  link_libraries(leasehold::${adapter})
endforeach()
"""


class Block:
    def __init__(self, page, line, language):
        self.where = f"{page.name}:{line}"
        self.name = re.sub(r"\W", "_", f"{page.stem}_{line}")
        self.language = language
        self.lines = []

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"

    @property
    def is_program(self):
        return re.search(r"^int main\(", self.text, re.MULTILINE) is not None


def blocks_of(page):
    block, skipped, previous = None, False, ""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if block is None and line.startswith("```"):
            block = Block(page, number, line[3:].strip())
            skipped = previous.startswith("<!-- not run: ")
        elif line.startswith("```"):
            if block.language in ("cpp", "sh") and not skipped:
                yield block
            block = None
        elif block is not None:
            block.lines.append(line)
        if line.strip():
            previous = line
    if block is not None:
        raise SystemExit(f"{block.where}: this block never ends")


def broken_links(page):
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for target in re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", line) + re.findall(r'src(?:set)?="([\w./-]+)"', line):
            if not (page.parent / target).exists():
                yield f"{page.name}:{number}: there is no {target}"


def run(command, where, what, **options):
    """One problem, or none."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60, **options)
    except subprocess.TimeoutExpired:
        return [f"{where}: {what}: no end after 60 s"]
    return [f"{where}: {what} ({done.returncode}):\n{done.stdout}"] if done.returncode else []


def check_cpp(blocks, args, scratch):
    lists = CMAKELISTS
    for block in blocks:
        (scratch / f"{block.name}.cc").write_text(block.text)
        kind = "executable({0} {0}.cc)" if block.is_program else "library({0} OBJECT {0}.cc)"
        lists += "add_" + kind.format(block.name) + "\n"
    (scratch / "CMakeLists.txt").write_text(lists)
    build = scratch / "build"
    problems = run([args.cmake, "-S", scratch, "-B", build, "-G", "Ninja",
                    f"-DCMAKE_PREFIX_PATH={args.prefix}", f"-DCMAKE_CXX_COMPILER={args.cxx}"],
                   scratch, "cannot use the installed library")
    if problems:
        return problems
    for block in blocks:
        failed = run([args.cmake, "--build", build, "--target", block.name],
                     block.where, "this block does not compile")
        if not failed and block.is_program:
            failed = run([build / block.name], block.where, "this program fails", cwd=scratch)
        problems += failed
    return problems


def check_sh(blocks, args, scratch):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("LEASEHOLD_")}
    environment["PATH"] = f"{args.prefix}/bin:{environment['PATH']}"
    environment["HOME"] = environment["XDG_STATE_HOME"] = str(scratch)
    problems = []
    for block in blocks:
        problems += run(["bash", "-eu", "-o", "pipefail", "-c", block.text],
                        block.where, "this block fails", cwd=scratch, env=environment)
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=os.path.abspath, help="where Leasehold is installed")
    parser.add_argument("--only-links", action="store_true")
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    if not args.only_links and args.prefix is None:
        parser.error("say where Leasehold is installed: --prefix")

    problems, count = [], 0
    for page in args.pages:
        blocks = list(blocks_of(page))
        count += len(blocks)
        problems += broken_links(page)
        for language, check in (("cpp", check_cpp), ("sh", check_sh)):
            chosen = [block for block in blocks if block.language == language]
            if chosen and not args.only_links:
                with tempfile.TemporaryDirectory() as scratch:
                    problems += check(chosen, args, pathlib.Path(scratch))
    for problem in problems:
        print(problem)
    print(f"{count} blocks, {len(problems)} problems")
    if count == 0:
        print("no block found: nothing was checked")
    return 1 if problems or count == 0 else 0


sys.exit(main())
