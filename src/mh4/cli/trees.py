"""``mh4 draw``, ``mh4 coverage``, ``mh4 transform`` and ``mh4 oracle``: commands that need trees but no model."""

import json
from typing import Annotated

import typer

from mh4.data.errors import counted
from mh4.data.files import check_input

from .options import (
    DecodingThreadsOption,
    SkipBadOption,
    TreeClass,
    check_named_once,
    error_policy,
    print_whole,
    report_skipped,
    say,
)


def draw(
    source: Annotated[str, typer.Argument(help="CoNLL-U with trees; - is standard input.", metavar="INPUT")] = "-",
    target: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Page to write, FILE.html; by default, trees are drawn in the terminal."),
    ] = None,
    skip_bad: SkipBadOption = False,
) -> None:
    """Draw all trees of a file, in the terminal or as pictures on one page; crossing arcs are marked."""
    from pathlib import Path

    from mh4.data.conllu import read_conllu
    from mh4.data.drawing import draw_text, printable
    from mh4.data.files import atomic_output, source_name
    from mh4.data.page import draw_page
    from mh4.decoders.trees import is_tree

    if target is not None and target != "-" and Path(target).suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"{target}: the name of a page must end in .html")
    errors = error_policy(skip_bad)
    sentences = read_conllu(source, errors=errors)
    if target is not None:
        with atomic_output(target) as stream:
            for piece in draw_page(sentences, Path(source_name(source)).name):
                stream.write(piece.encode())
    else:
        for sentence in sentences:
            typer.echo(printable(f"{sentence.label}: {sentence.text}"))
            tree = (
                draw_text(sentence.forms, sentence.padded_heads, sentence.relations)
                if is_tree(sentence.padded_heads)
                else None
            )
            typer.echo(f"{tree or '(no tree)'}\n")
    report_skipped(errors)


def coverage(
    treebanks: Annotated[list[str], typer.Argument(help="CoNLL-U with gold trees.", metavar="FILE...")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON; with --per-sentence, one line per sentence.")
    ] = False,
    per_sentence: Annotated[
        bool,
        typer.Option(
            "--per-sentence", help="Print the kept arcs of every sentence, separated by tabs, instead of totals."
        ),
    ] = False,
    threads: DecodingThreadsOption = None,
    skip_bad: SkipBadOption = False,
) -> None:
    """Print the percentage of trees in each class, and of arcs kept by the closest tree of the class."""
    from mh4.trees.closest import TREE_CLASSES
    from mh4.trees.coverage import coverage_table, iterate_coverage, measure_coverage

    errors = error_policy(skip_bad)
    check_named_once(treebanks)
    for path in treebanks:
        check_input(path)  # fail before any is measured
    if per_sentence:
        if not as_json:
            typer.echo("\t".join(("treebank", "sentence", "words", *TREE_CLASSES)))
        for path in treebanks:
            for sentence in iterate_coverage(path, threads=threads, errors=errors):
                if as_json:
                    typer.echo(json.dumps({"treebank": path, **sentence.as_dict()}, ensure_ascii=False))
                else:
                    typer.echo("\t".join(map(str, (path, sentence.name, sentence.words, *sentence.kept.values()))))
    else:
        results = {path: measure_coverage(path, threads=threads, errors=errors) for path in treebanks}
        if as_json:
            typer.echo(json.dumps({path: result.as_dict() for path, result in results.items()}, indent=1))
        else:
            print_whole(coverage_table(results))
    report_skipped(errors)


def transform(
    tree_class: Annotated[TreeClass, typer.Option("--to", help="Class of trees.")],
    source: Annotated[str, typer.Argument(help="CoNLL-U with gold trees; - is standard input.", metavar="INPUT")] = "-",
    target: Annotated[str, typer.Option("--output", "-o", help="Output file; - is standard output.")] = "-",
    mark_arcs: Annotated[
        bool,
        typer.Option(
            "--arcs", help="Write OldHead=H and OldDeprel=L into MISC of every word whose head or relation changes."
        ),
    ] = False,
    count: Annotated[
        bool,
        typer.Option("--count", help="Add the comment # optimal_projective_trees = N (with --to projective only)."),
    ] = False,
    threads: DecodingThreadsOption = None,
    skip_bad: SkipBadOption = False,
) -> None:
    """Replace every tree with the closest one of a class. Changed sentences get a comment; all else stays unchanged."""
    from decimal import Decimal

    from mh4.trees.transform import transform_file

    errors = error_policy(skip_bad)
    totals = transform_file(
        source, target, tree_class.value, mark_arcs=mark_arcs, count_trees=count, threads=threads, errors=errors
    )
    report_skipped(errors)
    say(
        f"{counted(totals.sentences, 'sentence')}, {counted(totals.words, 'word')}; "
        f"{counted(totals.changed_arcs, 'arc')} changed in {counted(totals.changed_sentences, 'sentence')}",
    )
    if count:
        mean = Decimal(totals.log_mean_trees).exp()  # may exceed the range of floats
        say(
            f"several optimal projective trees: {counted(totals.ambiguous_sentences, 'sentence')}; "
            f"geometric mean of their number over all sentences: {mean:.4g}",
        )


def oracle(
    source: Annotated[str, typer.Argument(help="CoNLL-U with gold trees; - is standard input.", metavar="INPUT")] = "-",
    target: Annotated[str, typer.Option("--output", "-o", help="Output file; - is standard output.")] = "-",
    system: Annotated[
        str,
        typer.Option(help="arc-standard, arc-eager, arc-eager-normalized, arc-hybrid, mh4, covington or lr-spine."),
    ] = "arc-standard",
    policy: Annotated[
        str | None,
        typer.Option(
            help="Policy that chooses among transition orders that build the same tree.",
            show_default="the system's first",
        ),
    ] = None,
    sequences: Annotated[
        bool,
        typer.Option(
            "--sequences",
            help="Write id, attainable arcs, words and transitions, one line per sentence, instead of CoNLL-U.",
        ),
    ] = False,
    skip_bad: SkipBadOption = False,
) -> None:
    """Annotate every gold tree, projective or not, with the transition sequence that recovers the most gold arcs."""
    from mh4.trees.computations import write_computations

    errors = error_policy(skip_bad)
    totals = write_computations(source, target, system, policy, sequences_only=sequences, errors=errors)
    report_skipped(errors)
    say(
        f"{counted(totals.sentences, 'sentence')}, {counted(totals.words, 'word')}, "
        f"{counted(totals.transitions, 'transition')}; "
        f"attainable accuracy {totals.accuracy:.2f} %",
    )
