"""Optimal computations for whole treebanks: transitions that build as many arcs of each gold tree as possible."""

from dataclasses import dataclass
from pathlib import Path

from mh4.data.conllu import read_conllu
from mh4.data.errors import ErrorPolicy, Errors
from mh4.data.files import atomic_output, check_apart
from mh4.data.writing import require_conllu
from mh4.decoders import ChartTooLargeError
from mh4.oracles.registry import get_oracle, optimal_computation

TRANSITIONS_COMMENT = "transitions"
ARCS_COMMENT = "attainable_arcs"


@dataclass
class OracleTotals:
    """Counts of what `write_computations` wrote, and of the gold arcs that the computations build."""

    sentences: int = 0
    words: int = 0
    transitions: int = 0
    attainable_arcs: int = 0

    @property
    def accuracy(self) -> float:
        """Attainable accuracy in percent: gold arcs built by the optimal computations."""
        return 100 * self.attainable_arcs / self.words if self.words else 0.0


def write_computations(
    source: str | Path,
    target: str | Path,
    system: str,
    policy: str | None = None,
    *,
    sequences_only: bool = False,
    errors: ErrorPolicy = "raise",
) -> OracleTotals:
    """Write a treebank with the optimal computation of every gold tree in comments.

    Every sentence gets ``# transitions = shift shift reduce_right …`` and ``# attainable_arcs = N``, the gold arcs that
    these transitions build, after its other comments; all else stays byte for byte. With ``sequences_only`` there is
    one line per sentence instead: its id, attainable arcs, words and the transitions, separated by tabs.

    ``source`` and ``target`` are CoNLL-U files, ``-`` is standard input or output; the target is complete or not there
    at all. DataErrors: see `read_conllu` and `atomic_output`; also for sentences that are too long for a chart, which
    ``errors`` can leave out likewise. ValueError: an unknown system or policy.
    """
    get_oracle(system, policy)
    if not sequences_only:
        require_conllu(target)
    check_apart(source, target)
    totals, report = OracleTotals(), Errors.of(errors)
    with atomic_output(target) as stream:
        for sentence in read_conllu(source, trees="required", errors=report):
            try:
                transitions, arcs = optimal_computation(sentence.padded_heads, system, policy)
            except ChartTooLargeError as error:
                report(sentence.error(str(error)))
                continue
            if sequences_only:
                columns = (sentence.label, arcs, len(sentence), " ".join(transitions))
                stream.write(("\t".join(map(str, columns)) + "\n").encode())
            else:
                annotated = sentence.with_comment(TRANSITIONS_COMMENT, " ".join(transitions))
                stream.write(annotated.with_comment(ARCS_COMMENT, arcs).to_bytes())
            totals.sentences += 1
            totals.words += len(sentence)
            totals.transitions += len(transitions)
            totals.attainable_arcs += arcs
    return totals
