"""Filling the chart for two values of l at once, as in long sentences, gives bit-identical results."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mh4.decoders import InfeasibleError, get_decoder, mh4


def decode(decoder, scores, bonus, paired_from):
    """Heads, parts and score, or None if every derivation is forbidden."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mh4, "PAIRED_FROM", paired_from)
        try:
            best = decoder.decode(scores, bonus)
        except InfeasibleError:
            return None
    return best.heads.tolist(), best.parts.tolist(), best.score


@given(
    st.sampled_from(["mh4-two", "mh4-hybrid"]),
    st.integers(1, 37),
    st.integers(1, 39),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 0.1, 0.5]),
    st.integers(0, 2**32 - 1),
)
def test_pairs_give_the_same_derivation(name, n, paired_from, single_root, ties, forbidden, seed):
    generator = np.random.default_rng(seed)
    decoder = get_decoder(name, single_root=single_root)
    scores = generator.standard_normal((len(decoder.channels), n + 2, n + 2), dtype=np.float32)
    if ties:
        scores = np.round(scores)
    scores[generator.random(scores.shape) < forbidden / 10] = -np.inf
    bonus = generator.standard_normal((n + 2, n + 2), dtype=np.float32)
    bonus[generator.random(bonus.shape) < forbidden] = -np.inf
    assert decode(decoder, scores, bonus, paired_from) == decode(decoder, scores, bonus, n + 9)


@pytest.mark.parametrize("n", [mh4.PAIRED_FROM - 2, mh4.PAIRED_FROM - 1, mh4.PAIRED_FROM, mh4.PAIRED_FROM + 13])
def test_pairs_at_the_length_where_they_begin(n):
    decoder = get_decoder("mh4-hybrid")
    scores = np.random.default_rng(n).standard_normal((13, n + 2, n + 2), dtype=np.float32)
    assert decode(decoder, scores, None, mh4.PAIRED_FROM) == decode(decoder, scores, None, n + 9)
