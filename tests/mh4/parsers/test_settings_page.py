"""docs/settings.md and docs/encoders.md describe every setting, with its default and the presets that change it."""

import re
from dataclasses import replace

from paths import ROOT

from mh4.models.transformer_config import TransformerConfig
from mh4.parsers.config import ChartConfig, GreedyConfig, PerceptronConfig, as_dict
from mh4.training.presets import PRESETS

PAGES = {name: (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("settings", "encoders")}
OF_THE_SYSTEM = {"system", "oracle", "positions", "form"}  # the default depends on other settings


def by_name(config):
    """The settings of a configuration without their parts; the kind of encoder is the setting ``encoder``."""
    values = {}
    for name, value in as_dict(config).items():
        values |= value if isinstance(value, dict) else {name: value}
    return {name: value for name, value in values.items() if name not in ("format", "kind")} | {"encoder": "bilstm"}


def cell(value):
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{shown}`" if isinstance(value, bool | str) else shown


def in_presets(name, default):
    """The presets with another value than the default, as the page lists them."""
    others = {preset: own[name] for preset, own in PRESETS.items() if own.get(name, default) != default}
    if len(others) == len(PRESETS) - 1 and len(set(others.values())) == 1:
        return f"all others: {cell(others['fast'])}"
    return ", ".join(f"`{preset}`: {cell(value)}" for preset, value in others.items())


def test_all_settings_are_described_with_their_defaults_and_presets():
    settings = by_name(PerceptronConfig()) | by_name(GreedyConfig())
    settings |= by_name(replace(ChartConfig(), encoder=TransformerConfig()))
    expected = {
        name: ("–" if default == "" or name in OF_THE_SYSTEM else cell(default), in_presets(name, default))
        for name, default in settings.items()
    }
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| (?:(.*?) )?\| ", PAGES["settings"], flags=re.MULTILINE)
    of_transformers = re.findall(r"^\| `(encoder_\w+)` \| (\S+) \|", PAGES["encoders"], flags=re.MULTILINE)
    found = [*rows, *((*row, "") for row in of_transformers)]
    assert {name: (default, presets) for name, default, presets in found} == expected
    assert len(found) == len(expected)
