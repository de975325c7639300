"""The parser a user holds: configuration, vocabulary and weights together, saved as a model folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from mh4.data.errors import DataError
from mh4.data.sentence import Annotation, Sentence

from ..base import TreebankParser, check_greedy
from ..config import PerceptronConfig
from ..folder import CONFIG, VOCABULARY, WEIGHTS, read_definition, read_tensors, write_definition, write_tensors
from ..systems import get_system
from .loops import Actions, new_room, parse_text
from .vocabulary import PerceptronVocabulary
from .weights import ARRAYS, from_lists

_SHORTEST_ROOM = 64


class PerceptronParser(TreebankParser):
    """A greedy transition-based parser scored by an averaged perceptron. One thread may use it at a time.

    Parameters
    ----------
    config : PerceptronConfig
    vocabulary : PerceptronVocabulary
    lists : four arrays
        Averaged weights, as of `weights.averaged_lists`.

    Attributes
    ----------
    contexts_per_decision : float
        How many contexts were scored for each decision since the parser was made: 1 but in systems whose features
        depend on the transition (0 before the first sentence).
    """

    config_type = PerceptronConfig

    def __init__(
        self,
        config: PerceptronConfig,
        vocabulary: PerceptronVocabulary,
        lists: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    ) -> None:
        self.config = config
        self.vocabulary = vocabulary
        self.single_root = vocabulary.single_root
        self.lists = lists
        self._system = get_system(config.system)
        self._templates = self._system.compiled_templates()
        self._actions = Actions.of(self._system, len(vocabulary.relations), vocabulary.forced_root)
        self._weights = from_lists(*lists)
        self._longest = 0
        self._decisions = self._contexts = 0

    @property
    def contexts_per_decision(self) -> float:
        """See the class."""
        return self._contexts / self._decisions if self._decisions else 0.0

    @classmethod
    def load(
        cls, folder: str | Path, device: str = "auto", search: str = "greedy", threads: int | None = None
    ) -> PerceptronParser:
        """Read a trained model.

        Parameters
        ----------
        folder
            A model folder: config.json, vocab.json, weights.safetensors.
        device, threads
            Of no account: perceptrons run on the CPU, in the thread that calls them.
        search : {"exact", "greedy"}
            Both mean the one that it has.

        Raises
        ------
        DataError
            Something in the folder is missing or damaged, or it holds a model of another kind.
        ValueError
            Another search.
        """
        check_greedy(search)
        folder = Path(folder)
        config, vocabulary = read_definition(folder, PerceptronConfig, PerceptronVocabulary)
        tensors = read_tensors(folder / WEIGHTS)
        actions = Actions.of(get_system(config.system), len(vocabulary.relations), vocabulary.forced_root)
        return cls(config, vocabulary, _checked(tensors, int(actions.first[-1]), folder))

    def save(self, folder: str | Path) -> None:
        """Write the model folder, each file as a whole, the weights last."""
        folder = Path(folder)
        write_definition(folder, self.config, self.vocabulary)
        write_tensors(
            folder / WEIGHTS,
            {name: torch.from_numpy(array) for name, array in zip(ARRAYS, self.lists, strict=True)},
        )

    def attempt(self, sentences: Sequence[Sentence], keep_heads: bool = False) -> list[Annotation]:
        """See `TreebankParser`.

        Raises
        ------
        ValueError
            ``keep_heads``: a greedy parser cannot build a tree around given heads.
        """
        if keep_heads:
            raise ValueError("a transition-based parser cannot keep given heads; use a model with a chart decoder")
        if not sentences:
            return []
        self._make_room(max(map(len, sentences)))
        text = self.vocabulary.text(sentences)
        heads, relations = np.empty((2, text.offsets[-1]), np.int32)
        root = self.vocabulary.relation_number(self.vocabulary.root_relation)
        decisions, contexts = parse_text(
            self._system.code,
            self._weights,
            self._templates,
            self._actions,
            text,
            self._room,
            root,
            self.vocabulary.single_root,
            heads,
            relations,
        )
        self._decisions += decisions
        self._contexts += contexts
        names = self.vocabulary.relations
        return [
            Annotation(heads[start:stop].copy(), tuple(names[r] for r in relations[start + 1 : stop].tolist()))
            for start, stop in zip(text.offsets[:-1].tolist(), text.offsets[1:].tolist(), strict=True)
        ]

    def _make_room(self, longest: int) -> None:
        if longest > self._longest:
            self._longest = max(longest, 2 * self._longest, _SHORTEST_ROOM)
            self._room = new_room(self._system, self._templates, self._actions, self._longest)


def _checked(
    tensors: dict[str, torch.Tensor], action_count: int, folder: Path
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The four arrays of a model folder, which the kernels will not check any more."""
    types = dict(zip(ARRAYS, (torch.int64, torch.int64, torch.int32, torch.float32), strict=True))
    fits = {name: tensor.dtype for name, tensor in tensors.items()} == types
    fits = fits and all(tensor.dim() == 1 for tensor in tensors.values())
    if fits:
        keys, offsets, actions, values = (tensors[name].numpy() for name in ARRAYS)
        fits = (
            len(offsets) == len(keys) + 1
            and offsets[0] == 0
            and bool((np.diff(offsets) > 0).all())
            and offsets[-1] == len(actions) == len(values)
            and bool((keys != 0).all())
            and len(np.unique(keys)) == len(keys)
            and bool(((actions >= 0) & (actions < action_count)).all())
        )
    if not fits:
        raise DataError(f"{folder / WEIGHTS}: does not fit {folder / CONFIG} and {folder / VOCABULARY}")
    return keys, offsets, actions, values
