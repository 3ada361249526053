"""Checks that dependencies point inward.

  headers DIR              public headers include only the C++ standard library, tl/expected.hpp and
                           leasehold/: no type of a client library shows in the API
  links --allow A;B LIST   the link libraries of a target are all among A;B
  symbols --nm NM ARCHIVE  a static library calls no store client and no network function
"""

import argparse
import pathlib
import re
import subprocess
import sys

ALLOWED_INCLUDE = re.compile(r'<[a-z_0-9]+>|<tl/expected\.hpp>|"leasehold/[a-z_0-9/]+\.h"')
FORBIDDEN_CALL = re.compile(
    r"(sqlite3_|PQ[a-z]|redis|zoo_|zookeeper|grpc|SSL_|curl_)\w*"
    r"|socket|connect|bind|listen|accept4?|sendto|sendmsg|recvfrom|recvmsg|getaddrinfo"
    r"|(asio|boost|google::protobuf)::.*"
)


def check_headers(folder):
    headers = sorted(pathlib.Path(folder).rglob("*.h"))
    if not headers:
        yield f"no header in {folder}"
    for header in headers:
        for number, line in enumerate(header.read_text().splitlines(), 1):
            included = re.match(r"\s*#\s*include\s*(\S+)", line)
            if included and not ALLOWED_INCLUDE.fullmatch(included[1]):
                yield f"{header}:{number}: a public header must not include {included[1]}"


def check_links(allowed, libraries):
    items = [re.sub(r"^\$<BUILD_INTERFACE:(.*)>$", r"\1", x) for x in libraries.split(";") if x]
    if not items:
        yield "the list of link libraries is empty"
    for item in items:
        if item not in allowed.split(";"):
            yield f"must not link {item}"


def check_symbols(nm, archive):
    output = subprocess.run(
        [nm, "--demangle", "--undefined-only", "--format=posix", archive],
        check=True, capture_output=True, text=True,
    ).stdout
    symbols = {line.rsplit(" U", 1)[0] for line in output.splitlines() if " U" in line}
    if not symbols:
        yield f"{archive} calls nothing at all: not the library that was meant"
    for symbol in sorted(symbols):
        if FORBIDDEN_CALL.fullmatch(symbol.split("@")[0]):
            yield f"{archive} must not call {symbol}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    headers = commands.add_parser("headers")
    headers.add_argument("folder")
    links = commands.add_parser("links")
    links.add_argument("--allow", required=True)
    links.add_argument("libraries")
    symbols = commands.add_parser("symbols")
    symbols.add_argument("--nm", default="nm")
    symbols.add_argument("archive")
    args = parser.parse_args()

    if args.command == "headers":
        problems = list(check_headers(args.folder))
    elif args.command == "links":
        problems = list(check_links(args.allow, args.libraries))
    else:
        problems = list(check_symbols(args.nm, args.archive))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


sys.exit(main())
