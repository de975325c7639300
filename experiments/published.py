"""Published numbers of Gómez-Rodríguez, Shi and Lee (2018), Global Transition-based Non-projective Dependency Parsing.

Tables 1, 2, 4, 5 and 6; Table 3 (coverage) is in table3_coverage.py. Treebanks are named by their language
codes in UD 2.0, systems as in grid.py. Means and standard deviations are over five seeds.
"""

from typing import NamedTuple

SEEDS = 5  # behind each mean and standard deviation


class Cell(NamedTuple):
    """Mean in percent, and standard deviation in points; None where the paper gives none."""

    mean: float
    deviation: float | None

    def __str__(self) -> str:
        return f"{self.mean:.2f}" if self.deviation is None else f"{self.mean:.2f} ± {self.deviation:.2f}"


def _read(text: str, columns: tuple[str, ...]) -> dict[str, dict[str, Cell]]:
    table: dict[str, dict[str, Cell]] = {}
    for line in text.strip().splitlines():
        code, *cells = line.split()
        values = [cell.partition("±") for cell in cells]
        table[code] = {
            column: Cell(float(mean), float(deviation) if deviation else None)
            for column, (mean, _, deviation) in zip(columns, values, strict=True)
        }
    return table


# Table 4: UAS on the development files, gold segmentation.
GLOBAL_SYSTEMS = ("mh3", "mst", "mh4-two", "mh4-hybrid", "1ec")
GREEDY_SYSTEMS = ("greedy-mh3", "greedy-mh4")
DEV_UAS = _read(
    """
eu 82.07±0.17 83.61±0.16 82.94±0.24 84.13±0.13 84.09±0.19 81.27±0.20 81.71±0.33
ur 86.89±0.18 86.78±0.13 86.84±0.26 87.06±0.24 87.11±0.11 86.40±0.16 86.05±0.18
got 83.72±0.19 84.74±0.28 83.85±0.19 84.59±0.38 84.77±0.27 82.28±0.18 81.40±0.45
hu 83.05±0.17 82.81±0.49 83.69±0.20 84.59±0.50 83.48±0.27 81.75±0.47 80.75±0.54
cu 86.70±0.30 88.02±0.25 87.57±0.14 88.09±0.28 88.27±0.32 86.05±0.23 86.01±0.11
da 85.09±0.16 84.68±0.36 85.45±0.43 85.77±0.39 85.77±0.16 83.90±0.24 83.59±0.06
el 87.82±0.24 87.27±0.22 87.77±0.20 87.83±0.36 87.95±0.23 87.14±0.25 86.95±0.25
hi 93.75±0.14 93.91±0.26 93.99±0.15 94.27±0.08 94.24±0.04 93.44±0.09 93.02±0.10
de 86.46±0.13 86.34±0.24 86.53±0.22 86.89±0.17 86.95±0.32 84.99±0.26 85.27±0.32
ro 89.34±0.27 88.79±0.43 89.25±0.15 89.53±0.20 89.52±0.25 88.76±0.30 87.97±0.31
avg 86.49 86.69 86.79 87.27 87.21 85.60 85.27
""",
    (*GLOBAL_SYSTEMS, *GREEDY_SYSTEMS),
)

# Tables 1 and 2: features of local and of global MH4 models, average UAS over the ten treebanks of Table 4. The system
# of each column; the four features of Table 1 and both columns of Table 2 are columns of Table 4, too.
LOCAL_FEATURES = {
    "{s0, b0}": ("greedy-mh4-two", Cell(49.83, None)),
    "{s1, s0, b0}": ("greedy-mh4-three", Cell(85.17, None)),
    "{s2, s1, s0, b0}": ("greedy-mh4", Cell(85.27, None)),
}
GLOBAL_FEATURES = {
    "{s0, b0}": ("mh4-two", Cell(86.79, None)),
    "hybrid": ("mh4-hybrid", Cell(87.27, None)),
}

# Tables 5 and 6: LAS on the test files by the evaluation of the CoNLL 2017 shared task, segmented by its baseline
# UDPipe; the ten most and the ten least non-projective treebanks. The last two columns are the task's two best systems.
TEST_SYSTEMS = ("mh3", "mst", "mh4-hybrid", "1ec", "ensemble")
REFERENCES = ("CoNLL #1", "CoNLL #2")
TEST_LAS_NONPROJECTIVE = _read(
    """
eu 78.17±0.33 79.90±0.08 80.22±0.48 80.17±0.32 81.55 81.44 79.61
ur 80.91±0.10 80.05±0.13 80.69±0.19 80.59±0.19 81.37 82.28 81.06
got 67.10±0.10 67.26±0.45 67.92±0.29 67.66±0.20 69.83 66.82 68.34
hu 76.09±0.25 75.79±0.36 76.90±0.31 76.07±0.20 79.35 77.56 76.55
cu 71.28±0.29 72.18±0.20 72.51±0.23 72.53±0.27 74.38 71.84 72.35
da 80.00±0.15 79.69±0.24 80.89±0.17 80.83±0.27 82.09 82.97 81.55
el 85.89±0.29 85.48±0.25 86.28±0.44 86.07±0.37 87.06 87.38 86.90
hi 89.88±0.18 89.93±0.12 90.22±0.12 90.28±0.21 90.78 91.59 90.40
de 76.23±0.21 75.99±0.23 76.46±0.20 76.42±0.35 77.38 80.71 77.17
ro 83.53±0.35 82.73±0.36 83.67±0.21 83.83±0.18 84.51 85.92 84.40
avg 78.91 78.90 79.57 79.44 80.83 80.85 79.83
""",
    (*TEST_SYSTEMS, *REFERENCES),
)
TEST_LAS_PROJECTIVE = _read(
    """
ja 74.29±0.10 73.93±0.16 74.23±0.11 74.12±0.12 74.51 74.72 74.51
zh 63.54±0.13 62.71±0.17 63.48±0.33 63.54±0.26 64.65 65.88 64.14
pl 86.49±0.19 85.76±0.31 86.60±0.26 86.36±0.28 87.38 90.32 87.15
he 61.47±0.24 61.28±0.24 61.93±0.22 61.75±0.22 62.40 63.94 62.33
vi 41.26±0.39 41.04±0.19 41.33±0.32 40.96±0.36 42.95 42.13 41.68
bg 87.50±0.20 87.03±0.17 87.63±0.17 87.56±0.14 88.22 89.81 88.39
sk 80.48±0.22 80.25±0.32 81.27±0.14 80.94±0.25 82.38 86.04 81.75
it 87.90±0.07 87.26±0.23 88.06±0.27 87.98±0.19 88.74 90.68 89.08
id 77.66±0.13 76.95±0.32 77.64±0.17 77.60±0.18 78.27 79.19 78.55
lv 69.62±0.55 69.33±0.51 70.54±0.51 69.52±0.29 72.34 74.01 71.35
avg 73.02 72.55 73.27 73.03 74.18 75.67 73.89
""",
    (*TEST_SYSTEMS, *REFERENCES),
)
