"""Training a parser with a network: the loop, and evaluation on dev."""

from __future__ import annotations

import gc
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.decoders import InfeasibleError
from mh4.machine import Terminated
from mh4.models.devices import HostCopy, multiplies_bfloat16
from mh4.models.weight_average import WeightAverage
from mh4.parsers.chart import ChartParser
from mh4.parsers.greedy import GreedyParser
from mh4.parsers.model_files import WEIGHTS, misfit, read_weights, write_tensors
from mh4.parsers.profiling import Profile, stage
from mh4.parsers.request import HEADS
from mh4.trees.evaluation import attachment_scores

from .batches import Example, TrainingBatch, collate, evened, shuffled_batches
from .checkpoint import Checkpoint
from .losses import BatchLoss
from .objectives import SCORES_LOST, DivergedError, make_objective
from .schedule import Progress, Schedule
from .training_folder import TrainingFolder
from .treebanks import by_name
from .workers import Workers

log = logging.getLogger("mh4")


@dataclass
class Recent:
    """Sums since the last evaluation."""

    words: int = 0
    loss: float = 0.0
    profile: Profile = field(default_factory=Profile)


class Trainer:
    """Trains one parser on the sentences of one treebank, or of several by name; `run` does it all."""

    def __init__(
        self,
        parser: ChartParser | GreedyParser,
        train: Sequence[Sentence] | Mapping[Any, Sequence[Sentence]],
        dev: Sequence[Sentence] | Mapping[Any, Sequence[Sentence]],
        folder: Path,
        on_step: Callable[[Progress, Recent], None] | None = None,
        on_evaluation: Callable[[dict[str, Any]], None] | None = None,
        workers: Workers | None = None,
        place: TrainingFolder | None = None,
        on_preparation: Callable[[int, int], None] | None = None,
    ) -> None:
        self.parser = parser
        self.workers = workers or Workers()
        self.settings = parser.config.training
        self.folder = folder
        self.place = place or TrainingFolder(folder)
        self.dev = by_name(dev)
        self.on_step = on_step
        self.on_evaluation = on_evaluation
        self.progress = Progress(learning_rate=self.settings.learning_rate)
        self.recent = Recent()
        self._done: deque[tuple[int, HostCopy]] = deque()  # steps whose loss and gradient norms are being copied
        self.objective = make_objective(parser)
        loss = BatchLoss(parser.network, self.objective, parser.config.weights, self._precision())
        self.batch_loss = self.workers.together(loss)
        named = [(name, one) for name, sentences in by_name(train).items() for one in sentences]
        sentences = [one for _, one in named] + [one for own in self.dev.values() for one in own]
        parser.network.encoder.remember(sentences, folder)
        self.examples = self._examples(named, on_preparation or (lambda done, total: None))
        self.schedule = Schedule(self.settings, len(self.batches(0)))
        self.optimizer = torch.optim.AdamW(
            parser.network.parameter_groups(),
            lr=self.settings.learning_rate,
            betas=(self.settings.beta1, self.settings.beta2),
            eps=self.settings.epsilon,
            weight_decay=self.settings.weight_decay,
            fused=True,
        )
        self._set_learning_rates()
        self.average = WeightAverage(parser.network, self.settings.weight_average)
        self.checkpoint = Checkpoint(folder, parser.network, self.optimizer, self.average, parser.randomness, sentences)
        self.best: dict[str, Tensor] = {}  # best weights on dev, if decays go back to them; only the lead has the file

    def _precision(self) -> Callable[[], AbstractContextManager[Any]]:
        """A function that makes the context in which layers compute; ValueError if bfloat16 would only be slower."""
        if self.settings.precision == "fp32":
            return nullcontext
        if not multiplies_bfloat16(self.parser.device):
            raise ValueError('this CPU has no instructions for bfloat16; train with precision="fp32"')
        return partial(torch.autocast, self.parser.device.type, torch.bfloat16)

    def _examples(
        self, named: Sequence[tuple[str | None, Sentence]], on_preparation: Callable[[int, int], None]
    ) -> list[Example]:
        network = self.parser.network
        known = network.encoder, self.parser.vocabulary
        examples, replaced = [], 0
        trees = []
        for done, (_, sentence) in enumerate(named):
            on_preparation(done, 2 * len(named))
            trees.append(self.objective.training_tree(sentence) if len(sentence) <= self.parser.longest else None)
        left_out: set[int] = set().union(*self.workers.gather({i for i, heads in enumerate(trees) if heads is None}))
        for i, ((treebank, sentence), heads) in enumerate(zip(named, trees, strict=True)):
            on_preparation(len(named) + i + 1, 2 * len(named))
            if heads is None or i in left_out:
                continue
            replaced += bool((heads != sentence.padded_heads).any())
            examples.append(Example.of(sentence, heads, *known, treebank))
        if not examples:
            raise DataError(f"no training sentences are left: {self._too_long}")
        if len(examples) < len(named):
            log.warning("%d training sentences are left out: %s", len(named) - len(examples), self._too_long)
        if replaced:
            log.info(
                "%d of %d training trees %s; the closest tree stands in for each",
                replaced,
                len(examples),
                self.objective.reason,
            )
        return examples

    @property
    def _too_long(self) -> str:
        """For messages: why sentences are left out."""
        return f"they have more than {self.parser.longest} words, or their charts would not fit into memory"

    def batches(self, epoch: int) -> list[list[int]]:
        """Indices of the sentences of each batch."""
        examples, settings, seed = self.examples, self.settings, [self.settings.seed, epoch]
        lengths = [len(example.sentence) for example in examples]
        seen = evened([example.treebank for example in examples], lengths, settings.treebank_evenness, [*seed, 1])
        costs = [examples[i].cost for i in seen]
        batches = shuffled_batches([lengths[i] for i in seen], costs, settings.batch_words, seed, settings.length_noise)
        return [seen[batch].tolist() for batch in batches]

    def collate(self, indices: Sequence[int]) -> TrainingBatch:
        """Tensors of one batch."""
        return collate([self.examples[i] for i in indices], self.parser.network.encoder, self.parser.device)

    def parts(self, indices: Sequence[int]) -> list[list[int]]:
        """Split a batch into parts to compute one after the other, of ``part_cost`` at most or of a single sentence."""
        limit = self.settings.part_cost
        if not limit or not indices:
            return [list(indices)] if indices else []
        parts: list[list[int]] = [[]]
        for i in sorted(indices, key=lambda i: self.examples[i].cost):  # equal costs keep their order
            if parts[-1] and (len(parts[-1]) + 1) * self.examples[i].cost > limit:
                parts.append([])
            parts[-1].append(i)
        return parts

    def prepare(self, indices: Sequence[int]) -> list[TrainingBatch]:
        """The batches that `step` takes for the sentences of one batch."""
        return [self.collate(part) for part in self.parts(indices)]

    def step(self, *parts: TrainingBatch) -> None:
        """Make one update, together with all workers, and record this worker's loss.

        The loss is the sum over the words of this worker's batch. The batch may come in ``parts``, whose gradients are
        added up. Nothing here waits for a GPU: its loss is recorded one step later, or by `settle`.
        """
        network = self.parser.network
        network.train()
        step, rise = self.progress.step, self.settings.dropout_rise
        network.scale_dropout(step / rise if step < rise else 1.0)
        self._set_learning_rates()
        self.optimizer.zero_grad(set_to_none=True)
        *others, last = parts or (None,)
        losses = []
        with self.workers.apart(self.batch_loss):
            for part in others:
                losses.append(self._backward(part))
        losses.append(self._backward(last))
        norms = self._clip()
        self.optimizer.step()
        self.average.update(self.progress.step + 1)
        loss = losses[0] if len(losses) == 1 else torch.stack(losses).sum()
        self._done.append((self.progress.step + 1, HostCopy(loss, *norms)))
        self.settle(self.parser.ahead)

    def _backward(self, part: TrainingBatch | None) -> Tensor:
        """Add the gradient of a part to the gradients so far; return the loss of the part."""
        loss = self.batch_loss(part, self.progress.epoch)
        (loss * (self.workers.count / self.settings.batch_words)).backward()  # workers average gradients
        return loss.detach()

    def _clip(self) -> list[Tensor]:
        """Clip gradients that are too large, separately for groups with limits of their own; return all norms."""
        limits: dict[float | None, list[Tensor]] = {None: []}
        for group in self.optimizer.param_groups:
            limits.setdefault(group.get("clip"), []).extend(group["params"])
        norms = []
        for limit, parameters in limits.items():
            limit = self.settings.gradient_clip if limit is None else limit
            norm = get_total_norm([own.grad for own in parameters if own.grad is not None])
            if limit and (self.parser.device.type != "cpu" or norm >= limit):  # a comparison would wait for the GPU
                clip_grads_with_norm_(parameters, limit, norm)
            norms.append(norm)
        return norms

    def settle(self, count: int = 0) -> None:
        """Record the losses of all steps but the last ``count``.

        Raises
        ------
        DivergedError
            A gradient is NaN or infinite.
        """
        while len(self._done) > count:
            step, outcome = self._done.popleft()
            loss, *norms = map(float, outcome.tensors())
            if not all(map(math.isfinite, norms)):
                raise DivergedError(f"no finite gradient in step {step}")
            self.recent.loss += loss

    def run(self) -> Progress:
        """Train until the schedule ends, and leave the model that is best on dev in the folder.

        An interruption (Ctrl-C) is passed on. If no model has been saved by then, a single worker first saves the
        present one, unless the folder holds the model of another training. It saves no state to resume from, because
        the last step may be incomplete.
        """
        gc.freeze()  # looking for garbage among all that stays anyway would take 3 % of the time
        try:
            return self._run()
        except DivergedError as error:
            raise ValueError(f"{error} (lower learning_rate; {self.place.state()})") from error
        except (KeyboardInterrupt, Terminated):
            nothing_yet = not (self.place.holds_another or self.progress.best_step)
            if nothing_yet and self.workers.count == 1 and self.progress.step and self._holds_numbers():
                with self.average.applied():
                    self.save_weights()
            raise
        finally:
            gc.unfreeze()

    def _run(self) -> Progress:
        progress, settings = self.progress, self.settings
        start = time.perf_counter() - progress.seconds
        self.workers.separate_random_numbers(self.parser.randomness, settings.seed, progress.step)
        while not progress.finished:
            batches = self.batches(progress.epoch)
            for indices in batches[progress.batch :]:
                lengths = [len(self.examples[i].sentence) for i in indices]
                share = [indices[k] for k in self.workers.share(lengths)]
                with self.recent.profile.recording():
                    with stage("collate"):
                        parts = self.prepare(share)
                    with stage("backward"):
                        self.step(*parts)
                self.recent.words += sum(lengths)
                progress.seconds = time.perf_counter() - start
                self.schedule.advance(progress, len(batches))
                if self.on_step is not None:
                    self.on_step(replace(progress), self.recent)
                if self.schedule.evaluates(progress):
                    self.evaluate()
                    self.workers.separate_random_numbers(self.parser.randomness, settings.seed, progress.step)
                    if progress.finished:
                        break
        progress.seconds = time.perf_counter() - start
        if progress.epoch < settings.max_epochs and progress.step >= settings.max_steps and self.workers.lead:
            log.warning(
                "training ended after %d steps (max_steps), in epoch %d of %d",
                *(progress.step, progress.epoch + 1, settings.max_epochs),
            )
        return progress

    def evaluate(self) -> None:
        """Evaluate on dev, advance the schedule, and save the state and, if it is the best so far, the model."""
        progress, recent = self.progress, self.recent
        with recent.profile.recording(), stage("backward"):
            self.settle()
        if not self._holds_numbers():
            raise DivergedError(f"weights are NaN or infinite after step {progress.step}")
        goes_back = self.settings.decay_from == "best"
        with self.average.applied():
            scores = self.dev_scores()
            uas, las = (sum(column) / len(scores) for column in zip(*scores.values(), strict=True))
            learns_relations = self.parser.config.weights.labeler_weight > 0  # otherwise LAS is left to chance
            improved = self.schedule.note(progress, uas, las, by_las=learns_relations)
            if improved and goes_back:
                kept = self.parser.network.kept_weights()  # as a resumed training would read them
                self.best = {name: own.to(torch.float32, copy=True) for name, own in kept.items()}
            if improved and self.workers.lead:
                self.save_weights()
        report = {
            "step": progress.step,
            "epoch": progress.epoch + progress.batch / len(self.batches(progress.epoch)),
            "seconds": round(progress.seconds, 1),
            "loss": round(sum(self.workers.gather(recent.loss)) / recent.words, 4),
            "words_per_second": round(recent.words / recent.profile.total, 1),
            "share": {name: round(share, 4) for name, share in recent.profile.shares.items()},
            "learning_rate": self.schedule.rate(progress),
            "dev_uas": round(uas, 2),
            "dev_las": round(las, 2),
            "best": improved,
        }
        if None not in scores:
            report["dev"] = {name: {"uas": round(own[0], 2), "las": round(own[1], 2)} for name, own in scores.items()}
        if self.schedule.move_on(progress) and goes_back:
            self.parser.network.load_state_dict(self.best)
            self.average.restart()
        if self.workers.lead:
            self.checkpoint.append(report)
            self.checkpoint.save(progress)
        self.recent = Recent()
        if self.on_evaluation is not None:
            self.on_evaluation(report)

    def _holds_numbers(self) -> bool:
        """Whether all weights that learn are finite."""
        learnt = [own for own in self.parser.network.parameters() if own.requires_grad]
        return bool(torch.stack([own.isfinite().all() for own in learnt]).all())

    def dev_scores(self) -> dict[str | None, tuple[float, float]]:
        """UAS and LAS on dev, in percent, of each treebank."""
        return {name: self._scores(name, sentences) for name, sentences in self.dev.items()}

    def _scores(self, treebank: str | None, dev: Sequence[Sentence]) -> tuple[float, float]:
        workers = self.workers
        try:
            own = self.parser.predict(dev[workers.rank :: workers.count], predict=HEADS, treebank=treebank)
        except (DataError, InfeasibleError):
            raise
        except ValueError as error:  # the decoder rejects the scores
            raise DivergedError(SCORES_LOST) from error
        shares = workers.gather(own)
        predictions = [shares[i % workers.count][i // workers.count] for i in range(len(dev))]
        return attachment_scores(dev, predictions)

    def save_weights(self) -> None:
        """Write the model as it is now."""
        weights, step = self.parser.network.kept_weights(), {"step": self.progress.step}
        self.place.save(lambda folder: write_tensors(folder / WEIGHTS, weights, step))

    def resume(self) -> None:
        """Continue where the state was last saved.

        Raises
        ------
        DataError
            The state or the best model is missing, damaged, or does not fit, or belongs to other sentences.
        """
        self.progress = self.checkpoint.load()
        if self.progress.batch >= (count := len(self.batches(self.progress.epoch))):
            raise DataError(
                f"{self.checkpoint.state}: batch {self.progress.batch} of an epoch that has {count} "
                "(start again with overwrite=True)"
            )
        self.progress.finished = self.schedule.is_over(self.progress)
        best = read_weights(self.folder / WEIGHTS) if self.progress.best_step else {}  # an error if it is not there
        if problem := misfit(best, self.parser.network.state_dict()) if best else None:
            raise DataError(
                f"{self.folder / WEIGHTS}: does not fit the model: {problem} (start again with overwrite=True)"
            )
        if self.settings.decay_from == "best":
            self.best = best
        if self.workers.lead:
            self.checkpoint.cut_log(self.progress.step)

    def _set_learning_rates(self) -> None:
        for group in self.optimizer.param_groups:
            rate = self.schedule.rate(self.progress, group.get("rate"), group.get("warm_up"))
            group["lr"] = rate * group.get("factor", 1.0)
