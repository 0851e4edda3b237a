#!/usr/bin/env python3
"""Runs the commands of the README, or of other pages, and compares what they print with what is shown there.

    python3 scripts/check_readme.py [--write] [FILE.md ...]

In a fenced block marked `console`, a line `$ command` is run (continued after `\\`) and the lines below it are its expected
standard output; standard error is not compared. A line `...` stands for any lines, `...` within a line for any text.
A command must succeed. Blocks run in order, in a fresh copy of the repository, each in one shell. Above a block that cannot
run here stands a comment that says why: `<!-- not run: it needs the network -->`. With `--write` an expected output that is wrong
is replaced by what was printed, unless it holds a `...`: for a person to read the difference after the model has changed.

`fewtag` is the one in `target/release`: run `cargo build --release` first.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from check_links import ROOT, tracked

SECONDS = 900  # Long enough to build everything once.
BLOCK = re.compile(r"^(?P<skip><!-- not run: [^\n]+ -->\n+)?```console\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Command:
    line: int
    text: str
    expected: list[str] = field(default_factory=list)


def commands(body: str, first_line: int) -> list[Command]:
    found: list[Command] = []
    continued = False
    for number, line in enumerate(body.splitlines(), first_line):
        if continued:
            found[-1].text += "\n" + line
        elif line.startswith("$ "):
            found.append(Command(number, line[2:]))
        elif found:
            found[-1].expected.append(line)
        else:
            sys.exit(f"line {number}: output without a command: `{line}`")
        continued = line.endswith("\\") and (continued or line.startswith("$ "))
    return found


def matches(expected: list[str], actual: list[str]) -> bool:
    """Whether the lines agree, blanks at their ends aside."""
    parts = []
    for line in expected:
        if line == "...":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append(r"[^\n]*".join(re.escape(part) for part in line.rstrip().split("...")) + r"\n")
    return re.fullmatch("".join(parts), "".join(line.rstrip() + "\n" for line in actual)) is not None


@dataclass
class Wrong:
    command: Command
    status: str
    output: list[str]
    complaints: list[str]

    def __str__(self) -> str:
        if self.status == "":
            return f"line {self.command.line}: `{self.command.text}` was not reached"
        shown = "\n".join(f"    {line}" for line in [*self.output, *self.complaints])
        return f"line {self.command.line}: `{self.command.text}` (exit status {self.status}) printed\n{shown}"


def run(block: list[Command], directory: Path, environment: dict[str, str]) -> list[Wrong]:
    """Runs the commands of one block in one shell; says what went wrong, if anything."""
    script = "".join(f"{command.text}\nprintf '\\0%d\\0' \"$?\"\n" for command in block)
    shell = subprocess.run(
        ["bash", "-c", script],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
    )
    pieces = shell.stdout.decode(errors="replace").split("\0")
    wrong = []
    for number, command in enumerate(block):
        output, status = (pieces[2 * number].splitlines(), pieces[2 * number + 1]) if len(pieces) > 2 * number + 1 else ([], "")
        if status != "0" or not matches(command.expected, output):
            wrong.append(Wrong(command, status, output, shell.stderr.decode(errors="replace").splitlines()[-20:]))
    return wrong


def rewritten(text: str, wrong: list[Wrong]) -> str:
    """The page with the outputs that were printed instead of the expected ones."""
    lines = text.splitlines()
    for each in reversed(wrong):
        if each.status == "0" and not any("..." in line for line in each.command.expected):
            first = each.command.line + each.command.text.count("\n")
            lines[first : first + len(each.command.expected)] = [line.rstrip() for line in each.output]
    return "\n".join(lines) + "\n"


def copy_repository(directory: Path) -> None:
    for file in tracked():
        target = directory / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)


def main(pages: list[str], write: bool) -> int:
    n_commands, errors = 0, []
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
    with tempfile.TemporaryDirectory() as temporary:
        directory, installed = Path(temporary) / "fewtag", Path(temporary) / "installed"
        copy_repository(directory)
        environment = os.environ | {
            "CARGO_TARGET_DIR": str(target),
            "CARGO_INSTALL_ROOT": str(installed),
            "PATH": f"{installed / 'bin'}:{target / 'release'}:{os.environ['PATH']}",
        }
        for page in pages:
            text = (ROOT / page).read_text(encoding="utf-8")
            wrong: list[Wrong] = []
            for match in BLOCK.finditer(text):
                if match["skip"]:
                    continue
                block = commands(match["body"], text.count("\n", 0, match.start("body")) + 1)
                n_commands += len(block)
                wrong += run(block, directory, environment)
            errors += [f"{page}: {each}" for each in wrong]
            if write and wrong:
                (ROOT / page).write_text(rewritten(text, wrong), encoding="utf-8")
    print("\n".join([*errors, f"{n_commands} commands run, {len(errors)} wrong"]))
    return 1 if errors else 0


if __name__ == "__main__":
    pages = [argument for argument in sys.argv[1:] if argument != "--write"]
    sys.exit(main(pages or ["README.md"], "--write" in sys.argv))
