"""When training evaluates, when the learning rate falls, and when it is over."""

import math
from dataclasses import dataclass

from mh4.parsers.config import TrainingConfig

GROWTH_STARTS = 20_000  # words of a treebank from which on patience grows with its size


@dataclass
class Progress:
    """The progress of training; saved with every checkpoint."""

    step: int = 0  # minibatches done
    epoch: int = 0  # epochs done
    batch: int = 0  # minibatches done in the present epoch
    learning_rate: float = 0.0
    best_uas: float = -1.0  # in the best evaluation on dev; before the first, −1 and step 0
    best_las: float = -1.0
    best_step: int = 0
    waited: int = 0  # evaluations since the last improvement or decay
    decays: int = 0
    seconds: float = 0.0
    fewest_left: int = 0  # steps left if nothing improves any more
    most_left: int = 0  # steps left at most
    finished: bool = False

    @property
    def seconds_left(self) -> tuple[float, float]:
        """Seconds left if nothing improves any more, and seconds left at most; infinite before the first step."""
        if not self.step:
            return math.inf, math.inf
        pace = self.seconds / self.step
        return self.fewest_left * pace, self.most_left * pace


def check_progress(progress: Progress) -> None:
    """Raise ValueError for numbers that training cannot reach."""
    for name, value in vars(progress).items():
        if not math.isfinite(value):
            raise ValueError(f"{name} is not a number")
        if value < 0 and (name not in ("best_uas", "best_las") or value != -1):
            raise ValueError(f"{name} must not be negative; got {value}")
    if progress.best_step > progress.step or progress.batch > progress.step or progress.epoch > progress.step:
        raise ValueError(f"best_step, epoch and batch cannot be beyond step {progress.step}")


class Schedule:
    """Settings of training that depend on the progress and on the size of the treebank.

    Attributes
    ----------
    interval : int
        Steps between evaluations.
    patience : int
        Evaluations without improvement after which the learning rate falls or training ends.
    """

    def __init__(self, settings: TrainingConfig, epoch_steps: int) -> None:
        self.settings = settings
        self.epoch_steps = epoch_steps
        self.interval = max(settings.evaluation_steps, -(-epoch_steps // 4))
        self.patience = settings.patience
        if settings.patience_growth:
            growth = max(1.0, epoch_steps * settings.batch_words / GROWTH_STARTS) ** settings.patience_growth
            steps = settings.patience * settings.evaluation_steps * growth
            self.patience = max(1, round(steps / self.interval))

    def advance(self, progress: Progress, epoch_steps: int) -> None:
        """Count a step of an epoch that has ``epoch_steps``."""
        settings = self.settings
        progress.step += 1
        progress.batch += 1
        if progress.batch == epoch_steps:
            progress.epoch += 1
            progress.batch = 0
        progress.most_left = settings.max_steps - progress.step
        if settings.max_epochs:
            in_epochs = (settings.max_epochs - progress.epoch) * epoch_steps - progress.batch
            progress.most_left = min(progress.most_left, in_epochs)
        evaluations = self.patience * (settings.decays + 1 - progress.decays) - progress.waited
        first = not progress.best_step  # the first evaluation is always an improvement
        left = (evaluations + first) * self.interval - (progress.step % self.interval or self.interval)
        progress.fewest_left = min(left, progress.most_left)

    def rate(self, progress: Progress, own: float | None = None, warm_up: int | None = None) -> float:
        """The learning rate of the next step; ``own`` and ``warm_up`` replace the general rate and warm-up."""
        settings = self.settings
        rate = progress.learning_rate if own is None else own * settings.decay_factor**progress.decays
        warm_up = settings.warm_up if warm_up is None else warm_up
        if progress.step < warm_up:
            rate *= (progress.step + 1) / warm_up
        if settings.rate_fall == "linear":
            epochs = progress.epoch + min(progress.batch / self.epoch_steps, 1.0)
            rate *= max(0.0, 1.0 - epochs / settings.max_epochs)
        return rate

    def evaluates(self, progress: Progress) -> bool:
        """Whether it is time to evaluate."""
        return progress.step % self.interval == 0 or self._is_last(progress)

    def note(self, progress: Progress, uas: float, las: float, by_las: bool = True) -> bool:
        """Record an evaluation; return whether it is the best so far.

        The best one has the highest LAS or, with ``by_las`` False or while no relation is right, as on dev without
        DEPREL, the highest UAS.
        """
        by_las = by_las and not las == 0 == progress.best_las
        improved = las > progress.best_las if by_las else uas > progress.best_uas
        if improved:
            progress.best_uas, progress.best_las, progress.best_step = uas, las, progress.step
            progress.waited = 0
        else:
            progress.waited += 1
        return improved

    def move_on(self, progress: Progress) -> bool:
        """Lower the learning rate or finish, if it is time; return whether patience has run out."""
        settings = self.settings
        decays = progress.waited >= self.patience
        if decays:
            progress.waited = 0
            progress.decays += 1
            progress.learning_rate *= settings.decay_factor
        progress.finished = self.is_over(progress)
        return decays

    def is_over(self, progress: Progress) -> bool:
        """Whether training has ended."""
        return progress.decays > self.settings.decays or self._is_last(progress)

    def _is_last(self, progress: Progress) -> bool:
        settings = self.settings
        return progress.step >= settings.max_steps or 0 < settings.max_epochs <= progress.epoch
