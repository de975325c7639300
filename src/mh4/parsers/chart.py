"""The parser with a network and an exact decoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from mh4.data.annotation import Annotation
from mh4.data.conllu import check_no_cycle
from mh4.data.errors import DataError, counted
from mh4.data.segmenter import Segmenter
from mh4.data.sentence import Sentence
from mh4.decoders import ChartTooLargeError, Decoder, InfeasibleError, get_decoder
from mh4.decoders.decoder import MARGINS_DECODES
from mh4.decoders.fallback import Fallback
from mh4.decoders.forest import Forest
from mh4.decoders.search import BeamSearch
from mh4.decoders.trees import given_heads_bonus
from mh4.models.devices import HostCopy, decoder_threads, send
from mh4.models.host_settings import settings_put_aside
from mh4.models.network import Encoded
from mh4.models.scorer import ChannelScorer

from .answers import Answers
from .boundaries import JointSegmenter
from .config import ChartConfig
from .definition import Definition
from .network import NetworkParser
from .prediction import Found
from .request import HEADS, Request
from .segmenter import NeuralSegmenter
from .sources import require_segmenter


class ChartParser(NetworkParser[ChartConfig, ChannelScorer], kind=ChartConfig.kind):
    """A dependency parser: scores from a network, trees from an exact decoder or from a beam over its derivations.

    Parameters
    ----------
    definition : Definition of a ChartConfig
    device : {"auto", "cpu", "cuda"}
    search : {"exact", "beam:K", "greedy"}
        The last two work only with decoders of transition systems.

    Examples
    --------
    >>> parser = ChartParser.load("models/hu")                            # doctest: +SKIP
    >>> parser(["A", "kutya", "ugat", "."]).heads                         # doctest: +SKIP
    """

    config_type = ChartConfig
    can_keep_heads = True

    def __init__(
        self,
        definition: Definition[ChartConfig],
        device: str = "auto",
        search: str = "exact",
        weights: Mapping[str, Tensor] | None = None,
    ) -> None:
        config, scorers = definition.config, definition.config.scorers
        decoder = get_decoder(config.decoder, single_root=config.single_root, search=search)
        super().__init__(
            definition,
            device,
            lambda size: ChannelScorer(size, decoder.roles, scorers.mlp, scorers.mlp_dropout, scorers.members),
            weights,
        )
        self.decoder: Decoder = decoder
        self.fallback = Fallback(decoder)
        self.single_root = config.single_root
        self.label_bonus = config.label_bonus
        allowed = torch.from_numpy(self.relations.allowed)
        self._penalties = (
            torch.zeros(allowed.shape, dtype=torch.float32, device=allowed.device)
            .masked_fill(~allowed, -torch.inf)
            .to(self.device)
        )

    def limit_charts(self, most: int) -> None:
        self.decoder.memory_limit = most
        if isinstance(self.decoder, BeamSearch):
            self.decoder.chart.memory_limit = most
        self.fallback = Fallback(self.decoder)

    def __repr__(self) -> str:
        return f"<ChartParser: {self.config.decoder}>"

    @torch.inference_mode()
    def score(self, sentences: Sequence[Sentence], treebank: str | None = None) -> list[np.ndarray]:
        """Scores of all parts of each sentence: float32 (C, n + 2, n + 2) for n words, C channels as of the decoder.

        The arc bonus of relations (``label_bonus``) is included only if ``arc`` is the only channel.
        """
        scores: list[np.ndarray] = [np.empty(0)] * len(sentences)
        if self.network.training:
            self.network.eval()
        with settings_put_aside():
            for indices in self.batches(sentences):
                encoded = self.encode([sentences[i] for i in indices], treebank)
                self._cut(self.start_scores(encoded), sentences, indices, scores)
        return scores

    @torch.inference_mode()
    def tree_scores(
        self,
        sentences: Sequence[Sentence],
        treebank: str | None = None,
        before_batch: Callable[[], object] | None = None,
    ) -> np.ndarray:
        """float64 (S,): the score of the best tree of each sentence; NaN where its chart does not fit into memory.

        ``before_batch`` may raise an error to stop.
        """
        found = np.full(len(sentences), np.nan)
        request = Request(predict=HEADS, treebank=treebank)
        fitting = [i for i, sentence in enumerate(sentences) if self.decoder.fits(len(sentence))]
        with settings_put_aside():
            for batch in self.batches([sentences[i] for i in fitting]):
                if before_batch is not None:
                    before_batch()
                indices = [fitting[i] for i in batch]
                own = [sentences[i] for i in indices]
                trees = self.find_heads(self.start_scores(self.encode(own, treebank)), own, request)
                found[indices] = [one.trees[0].score for one in trees]
        return found

    def annotate_and_score(
        self, sentences: Sequence[Sentence], treebank: str | None = None
    ) -> tuple[Answers, list[np.ndarray]]:
        """The trees of some sentences and their `score`, in one pass through the network."""
        scores: list[np.ndarray] = [np.empty(0)] * len(sentences)
        answers = self._answer_and_note(
            sentences,
            Request(predict=HEADS, treebank=treebank),
            lambda indices, of_batch: self._cut(of_batch, sentences, indices, scores),
        )
        return answers, scores

    def predict_with_margins(self, sentences: Sequence[Sentence], treebank: str | None = None) -> list[Annotation]:
        """The trees of some sentences with their margins; the model need not be calibrated.

        Raises
        ------
        ValueError
            The search is not exact, or the model was not trained on the treebank.
        """
        self._check_exact()
        self.check(Request(predict=HEADS, treebank=treebank))
        return self._answer(sentences, Request(predict=HEADS, confidence=True, treebank=treebank)).checked()

    def _cut(
        self, of_batch: HostCopy, sentences: Sequence[Sentence], indices: list[int], scores: list[np.ndarray]
    ) -> None:
        matrices, bonus = split_scores(of_batch)
        if bonus is not None and self.decoder.channels == ("arc",):
            matrices = matrices + bonus[:, None]
        for own, i in zip(matrices, indices, strict=True):
            size = len(sentences[i]) + 2
            scores[i] = own[:, :size, :size].copy()

    def start_scores(self, encoded: Encoded) -> HostCopy:
        return HostCopy(self.network.scorer(encoded.roles), *self.arc_bonus(encoded.states))

    def arc_bonus(self, states: Tensor) -> list[Tensor]:
        """The arc bonus of relations, float32 (B, N, N), from context vectors, in a list; empty without one."""
        if not self.label_bonus:
            return []
        return [self.label_bonus * pad(self.network.all_label_logs(states, self._penalties), (0, 1, 0, 1))]

    def bonus_difference(self, states: Tensor, changed: np.ndarray) -> Tensor:
        """The arc bonus of predicted trees minus that of gold trees; see `PartDifference.changed`."""
        if not self.label_bonus or not changed.size:
            return states.new_zeros(())
        sentences, predicted, gold, words = send(torch.from_numpy(changed), self.device)
        arcs = sentences.repeat(2), torch.cat([predicted, gold]), words.repeat(2)
        of_predicted, of_gold = self.network.label_logs(states, self._penalties, *arcs).chunk(2)
        return self.label_bonus * (of_predicted - of_gold).sum()

    def segmenter_for(self, request: Request, before_batch: Callable[[], object] | None = None) -> Segmenter:
        if request.boundaries == "segmenter" or not self.decoder.exact:
            return super().segmenter_for(request)
        segmenter = require_segmenter(self.segmenter)
        if not isinstance(segmenter, NeuralSegmenter):
            raise ValueError(
                "the UDPipe segmenter of this model has no probabilities to combine with trees; train the model again"
            )
        tree_scores = partial(self.tree_scores, treebank=request.treebank, before_batch=before_batch)
        return JointSegmenter(segmenter, tree_scores)

    def _check_exact(self) -> None:
        if not self.decoder.exact:
            raise ValueError(
                f"{self.decoder!r} searches without an exact decoder and has no confidences or k best trees"
            )

    def _check_certainty(self, request: Request) -> None:
        self._check_exact()
        if request.confidence and self.calibration is None:
            if self.calibration_problem is not None:
                raise DataError(self.calibration_problem)
            where = "FOLDER" if self.folder is None else self.folder
            raise ValueError(
                f"{where}: the model is not calibrated yet; run mh4 calibrate {where} DEV once, with a treebank "
                "that it was not trained on"
            )

    def find_heads(self, scores: HostCopy, sentences: Sequence[Sentence], request: Request) -> list[Found]:
        matrices, bonus = split_scores(scores)
        lengths, threads = [len(sentence) for sentence in sentences], decoder_threads(self.threads)
        heads = [sentence.padded_heads for sentence in sentences]
        if request.keep_heads:
            given = given_heads_bonus(heads, matrices.shape[-1])
            bonus = given if bonus is None else given + bonus
        warnings = {
            i: size_warning(self.decoder, sentence, f"parsed with {instead}{request.lost}")
            for i, sentence in enumerate(sentences)
            if (instead := self.fallback.instead(len(sentence)))
        }
        if not request.confidence and request.trees == 1:
            try:
                best = self.fallback.decode_batch(matrices, lengths, bonus, threads)
                return [Found([tree], warning=warnings.get(i)) for i, tree in enumerate(best)]
            except InfeasibleError:
                if not request.keep_heads:
                    raise
        # Decode sentence by sentence, since some may have no tree with the given heads.
        decodes = request.trees * MARGINS_DECODES
        answers = self.fallback.map_batch(
            lambda own, known: self._find(own, known, request), matrices, lengths, bonus, threads, decodes
        )
        found = []
        for i, (sentence, answer) in enumerate(zip(sentences, answers, strict=True)):
            if isinstance(answer, InfeasibleError):
                found.append(Found([], error=infeasible(sentence, answer, self.single_root)))
            elif answer.warning:
                where = f"{sentence.source}: {sentence.name}"
                found.append(answer._replace(warning=f"{where}: parsed{request.lost}: {answer.warning}"))
            else:
                found.append(answer._replace(warning=warnings.get(i)))
        return found

    def _find(self, scores: np.ndarray, bonus: np.ndarray | None, request: Request) -> Found | InfeasibleError:
        forest = self.fallback.forest(scores, bonus)
        try:
            if self.fallback.instead(scores.shape[-1] - 2) or not (request.confidence or request.trees > 1):
                return Found([forest.best])
            try:
                if request.confidence:
                    losses = self._losses(forest) if request.alternatives else None
                    return Found([forest.best], forest.margins, losses)
                return Found(forest.k_best(request.trees) or [forest.best])
            except ChartTooLargeError as error:
                return Found([forest.best], warning=str(error))
        except InfeasibleError as error:
            if not request.keep_heads:
                raise
            return error

    @staticmethod
    def _losses(forest: Forest) -> np.ndarray:
        """`Confidence.losses`; the loss of the runner-up is set to the margin exactly."""
        best, values, runners_up = forest.margins
        words = np.arange(1, len(best.heads))
        with_arc = forest.max_marginals[:-1, :-1]
        losses = np.maximum(np.float32(best.score) - with_arc, values[None].astype(np.float32))
        losses[best.heads[1:], words] = np.inf
        known = runners_up[1:] >= 0
        losses[runners_up[1:][known], words[known]] = values[1:][known]
        return losses


def split_scores(scores: HostCopy) -> tuple[np.ndarray, np.ndarray | None]:
    """Scores (B, C, N, N), and the arc bonus (B, N, N) if there is one; waits until they have arrived on the host."""
    matrices, *bonus = (own.numpy() for own in scores.tensors())
    return matrices, bonus[0] if bonus else None


def size_warning(decoder: Decoder, sentence: Sentence, instead: str) -> str:
    """The warning that the chart or beam of a sentence would be too large; ``instead`` says how it was parsed."""
    beam = f"a beam of {decoder.width:,} configurations for" if isinstance(decoder, BeamSearch) else None
    what = beam or f"the exact {decoder.name} chart of"
    problem = f"{what} {counted(len(sentence), 'word')} would not fit into memory"
    return f"{sentence.source}: {sentence.name}: {problem}; {instead}"


def infeasible(sentence: Sentence, error: InfeasibleError, single_root: bool) -> DataError:
    """The error of a sentence whose given heads no tree of the decoder contains."""
    return _conflict(sentence, single_root) or sentence.error(
        f"the given heads cannot all be kept: {error} (remove some, or use a decoder with a larger class of trees)"
    )


def _conflict(sentence: Sentence, single_root: bool) -> DataError | None:
    """The error of given heads that no tree at all contains: a cycle, or several roots; None if some tree does."""
    try:
        check_no_cycle(sentence)
    except DataError as error:
        return error
    if single_root and len(sentence.roots) > 1:
        first, second = sentence.roots[:2]
        return sentence.error(f"words {first} and {second} both have HEAD 0, but the root has one child", second)
    return None
