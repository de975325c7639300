"""The perceptron parser: configuration, vocabulary and averaged weights, saved as a model folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
import torch

from mh4.data.annotation import Annotation
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.data.values import DEPREL, sound

from ..answers import Answers
from ..base import Parser
from ..config import PerceptronConfig
from ..folder import ModelFolder
from ..model_files import CONFIG, VOCABULARY, WEIGHTS, write_tensors
from ..request import Request
from ..runtime import Runtime, check_greedy
from ..systems import get_system
from .loops import Actions, new_room, parse_text
from .vocabulary import PerceptronVocabulary
from .weights import ARRAYS, from_lists

UNKNOWN_TAG = "_"


class PerceptronParser(Parser, kind=PerceptronConfig.kind):
    """A greedy transition-based parser scored by an averaged perceptron.

    Parameters
    ----------
    config : PerceptronConfig
    vocabulary : PerceptronVocabulary
    lists : four arrays
        Averaged weights; see `weights.averaged_lists`.
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
        self.spaced_words = vocabulary.spaced
        self.needs = frozenset() if UNKNOWN_TAG in vocabulary.tags else frozenset({vocabulary.tag_column})
        self.places = vocabulary.places
        self.lists = lists
        self._system = get_system(config.system)
        self._templates = self._system.compiled_templates()
        self._actions = Actions.of(self._system, vocabulary.places.allowed(vocabulary.relations))
        self._weights = from_lists(*lists)

    def __repr__(self) -> str:
        return f"<PerceptronParser: {self.config.system}>"

    @classmethod
    def read_folder(cls, folder: ModelFolder, runtime: Runtime) -> Self:
        check_greedy(runtime.search)
        config, vocabulary = folder.config_of(PerceptronConfig), folder.vocabulary(PerceptronVocabulary)
        tensors = folder.weights()
        actions = Actions.of(get_system(config.system), vocabulary.places.allowed(vocabulary.relations))
        parser = cls(config, vocabulary, _checked(tensors, int(actions.first[-1]), folder.path))
        parser.meta = folder.meta
        return parser

    def write(self, folder: ModelFolder) -> None:
        folder.write_definition(self.config, self.vocabulary)
        weights = {name: torch.from_numpy(array) for name, array in zip(ARRAYS, self.lists, strict=True)}
        write_tensors(folder / WEIGHTS, weights)

    def _answer(self, sentences: Sequence[Sentence], request: Request) -> Answers:
        problems = {i: error for i, one in enumerate(sentences) if (error := self.unparsable(one))}
        parsed = iter(self._parse_tagged([one for i, one in enumerate(sentences) if i not in problems]))
        return Answers([Annotation() if i in problems else next(parsed) for i in range(len(sentences))], problems)

    def unparsable(self, sentence: Sentence) -> DataError | None:
        """The error of a sentence with an untagged word, unless training had such words; None if there is no error."""
        column = self.vocabulary.tag_column
        tags = getattr(sentence, column)
        if UNKNOWN_TAG not in tags or column not in self.needs:
            return None
        word = tags.index(UNKNOWN_TAG) + 1
        name = column.upper()
        return sentence.error(
            f"word {word} has no {name}, without which this model cannot parse (let a network fill it in: mh4 parse "
            f"MODEL --predict {column}; score it with --given {column}; or train a parser with --scorer bilstm)",
            word,
        )

    def _parse_tagged(self, sentences: Sequence[Sentence]) -> list[Annotation]:
        if not sentences:
            return []
        room = new_room(self._system, self._templates, self._actions, max(map(len, sentences)))
        text = self.vocabulary.text(sentences)
        heads, relations = np.empty((2, text.offsets[-1]), np.int32)
        root = self.vocabulary.relation_number(self.vocabulary.root_relation)
        parse_text(
            self._system.kernels,
            self._weights,
            self._templates,
            self._actions,
            text,
            room,
            root,
            self.vocabulary.single_root,
            heads,
            relations,
        )
        names = [sound(name, DEPREL) for name in self.vocabulary.relations]
        return [
            Annotation(heads[start + 1 : stop].copy(), tuple(names[r] for r in relations[start + 1 : stop].tolist()))
            for start, stop in zip(text.offsets[:-1].tolist(), text.offsets[1:].tolist(), strict=True)
        ]


def _checked(
    tensors: dict[str, torch.Tensor], action_count: int, folder: Path
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The four arrays of a model folder, validated here because the kernels check no indices."""
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
