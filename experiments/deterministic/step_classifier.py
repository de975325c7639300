"""The classifier that drives a deterministic parser: one hidden layer over a few features of the configuration.

Nederhof (2019), section 8: 256 hidden units; parts of speech and fixed word vectors of the three topmost stack elements
and of the first three words of the remaining input; relations of the outermost dependents of the two topmost stack
elements. The paper leaves the non-linearity open; here it is the rectifier.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

HIDDEN = 256


class StepClassifier(nn.Module):
    """Scores of the possible steps.

    Parameters
    ----------
    vectors : float32 (V, D)
        Word vectors, which are not trained. D may be 0.
    word_slots : int
        Number of words in the input.
    symbol_slots : int
        Number of symbols (tags, relations, …) in the input.
    symbols : int
        Number of symbols in all slots together; every slot has its own range.
    classes : int
        Number of steps to choose from.
    hidden : int
        Number of units in the hidden layer.
    """

    vectors: Tensor

    def __init__(
        self, vectors: Tensor, word_slots: int, symbol_slots: int, symbols: int, classes: int, hidden: int = HIDDEN
    ) -> None:
        super().__init__()
        self.register_buffer("vectors", vectors, persistent=True)
        # A matrix times one-hot symbols is a sum of its rows. As every slot has a symbol, a bias would add nothing.
        self.symbols = nn.EmbeddingBag(symbols, hidden, mode="sum")
        nn.init.normal_(self.symbols.weight, std=symbol_slots**-0.5)
        self.words = nn.Linear(word_slots * vectors.shape[1], hidden, bias=False) if vectors.shape[1] else None
        self.output = nn.Linear(hidden, classes)

    def forward(self, words: Tensor, symbols: Tensor) -> Tensor:
        """Scores, (B, classes), from rows of the word vectors, int (B, word_slots), and int (B, symbol_slots)."""
        hidden = self.symbols(symbols)
        if self.words is not None:
            hidden = hidden + self.words(self.vectors[words].flatten(1))
        return self.output(torch.relu(hidden))


def target_set_loss(scores: Tensor, allowed: Tensor, right: Tensor) -> Tensor:
    """Mean of −log P(a right class), P being the softmax over the allowed classes.

    With one right class, this is cross-entropy. With several, the classifier may prefer any of them.

    Parameters
    ----------
    scores : (B, K)
    allowed, right : bool (B, K)
        At least one class of every row is right and allowed; classes that are right but not allowed do not count.
    """
    every = scores.masked_fill(~allowed, -torch.inf).logsumexp(1)
    good = scores.masked_fill(~(allowed & right), -torch.inf).logsumexp(1)
    return (every - good).mean()
