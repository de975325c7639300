"""From a `TrainingJob` to a model folder: one life cycle for networks and perceptrons."""

from __future__ import annotations

from contextlib import ExitStack

from mh4.data.errors import DataError
from mh4.parsers.config import PerceptronConfig
from mh4.parsers.model_files import CONFIG
from mh4.parsers.ownership import sole_owner

from .fitters import Fitter, NetworkFitter, PerceptronFitter
from .job import TrainingJob
from .origin import noting_origin
from .schedule import Progress
from .segmenter import train_segmenter


def run_training(job: TrainingJob) -> Progress:
    """Train a parser and leave the model that was best on ``job.dev`` in the folder.

    Processes started by `torchrun` train a network together, and share each batch by words; the result is the same as
    from one process, except for rounding and random numbers.

    Raises
    ------
    DataError
        Bad treebanks, or an output folder that does not fit ``job.resume`` and ``job.overwrite``.
    ValueError
        Training diverged.
    """
    folder = job.folder
    with ExitStack() as stack:
        fitter: Fitter = (
            PerceptronFitter(job) if isinstance(job.config, PerceptronConfig) else NetworkFitter(job, stack)
        )
        if fitter.lead:
            stack.enter_context(sole_owner(folder))
        if (folder / CONFIG).exists() and not (job.resume or job.overwrite):
            how = "continue with resume=True, start again" if fitter.resumes else "start again"
            raise DataError(f"{folder}: holds a model already ({how} with overwrite=True)")
        treebanks = fitter.read()
        report = noting_origin(folder, *treebanks, job.command, job.on_evaluation) if fitter.lead else None
        place, needs_segmenter = fitter.prepare(treebanks, report)
        with place.noted():
            if needs_segmenter:
                train, dev = ([one for part in parts for one in part.sentences] for parts in treebanks)
                place.keep(train_segmenter(train, dev, fitter.seed).files)
            return fitter.fit()
