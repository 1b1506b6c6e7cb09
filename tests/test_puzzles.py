"""The puzzles: holes are found, solutions are right, mistakes are told."""

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from xetl import xetile

TUTORIALS = Path(__file__).parents[1] / "tutorials"


def run(name):
    done = subprocess.run(
        [sys.executable, TUTORIALS / name],
        env={**os.environ, "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_each_hole_is_found():
    said = run("puzzles.py")
    assert len(said) == 12
    assert all(line.endswith("still has its `...`") for line in said)


@pytest.mark.slow
def test_solutions_are_right():
    said = run("puzzles_solutions.py")
    assert len(said) == 12
    assert all(line.endswith(": right") for line in said)


def kernels(name):
    tree = ast.parse((TUTORIALS / name).read_text())
    return {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}


def test_puzzles_are_their_solutions_but_for_holes():
    puzzles, solutions = kernels("puzzles.py"), kernels("puzzles_solutions.py")
    assert list(puzzles) == list(solutions)
    for name, puzzle in puzzles.items():
        given = {ast.unparse(line) for line in puzzle.body}
        solved = {ast.unparse(line) for line in solutions[name].body}
        assert all("..." in line for line in given - solved)
        assert given - solved, name


@pytest.fixture
def verdict():
    spec = importlib.util.spec_from_file_location(
        "puzzles_checker", TUTORIALS / "puzzles_checker.py"
    )
    checker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(checker)
    return checker.verdict


def test_mistakes_are_told(verdict):
    @xetile.kernel(grid=1)
    def row_means(X, Y):
        x = xetile.load_tile(xetile.init_tile(X, [0, 0], (16, 64)))
        xetile.store_tile(x.sum(1) / 64, xetile.init_tile(Y, [0], (16,)))

    said = verdict(row_means)
    assert said.startswith("[16] is never written, or no number (57% of all")

    @xetile.kernel(grid=lambda a: a.X.shape[0])
    def transpose(X, Y):
        row = xetile.program_id(0)
        x = xetile.load_tile(xetile.init_tile(X, [row, 0], (1, 83)))
        xetile.store_tile(x.T * 0, xetile.init_tile(Y, [0, row], (83, 1)))

    assert "is 0.0, should be" in verdict(transpose).replace("-0.0", "0.0")

    @xetile.kernel(grid=1)
    def softmax(X, Y):
        x = xetile.load_tile(xetile.init_tile(X, [0, 0], (1, 128)))
        xetile.store_tile(x, xetile.init_tile(Y, [0, 0], (1, 100)))

    line = softmax.fn.__code__.co_firstlineno + 3
    assert verdict(softmax).startswith(f"line {line}: ")
