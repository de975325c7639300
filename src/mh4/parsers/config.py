"""Settings of models and their training: validated when created, saved beside the weights as config.json."""

import json
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator
from pydantic.dataclasses import dataclass

from mh4.data.guesses import SETTINGS, hint
from mh4.decoders import decoder_names, get_decoder
from mh4.models.checked import STRICT, Positive, Share, Weight, checked
from mh4.models.encoder import EncoderConfig
from mh4.models.encoders import DEFAULT, ENCODERS
from mh4.models.network_config import LossWeights, ScorerConfig
from mh4.models.transition_scorer import FORMS
from mh4.oracles.costs import DYNAMIC, EXPLORING, ORACLE_NAMES

from .column_weights import ColumnWeights
from .systems import get_system

# Format of model folders. Format 1 has no kind, format 2 one loss weight each for UPOS, XPOS and FEATS; up to format 3,
# the settings of encoder, scorers and loss weights form one part, `network`.
FORMAT = 4
FORMER = "feature_weight"  # a setting of earlier versions; parsing never depended on it
# Column weights of models up to format 3, which do not contain them.
COLUMNS_UP_TO_3 = {
    "form_weight": 0.5,
    "form_smoothing": 0.5,
    "relation_weight": 0.5,
    "agreement_weight": 0.7,
    "occurrence_smoothing": 5.0,
    "candidate_analyses": 8,
    "rarity_penalty": 1e-3,
    "candidate_rules": 20,
    "known_lemma_weight": 6.0,
}

Seed = Annotated[int, Field(ge=0, lt=2**63)]
Count = Annotated[int, Field(ge=0)]
Probability = Annotated[float, Field(ge=0, le=1)]
TagColumn = Literal["upos", "xpos"]
Ties = Literal["best", "all", "any"]
Loss = Literal["hinge", "softmax-margin", "crf"]


@dataclass(frozen=True, config=STRICT)
class TrainingConfig:
    """Optimisation; the defaults are the published settings (Gómez-Rodríguez, Shi & Lee 2018).

    Attributes
    ----------
    weight_decay
        Decoupled weight decay: the fraction of every weight, times the learning rate, subtracted in a step (Loshchilov
        and Hutter 2019).
    gradient_clip
        Largest norm of the gradient, which is scaled down to it; 0: no limit.
    batch_words
        Words per minibatch; the summed loss is divided by this number.
    part_cost
        Words, or a transformer's pieces of words, that are computed at a time: a larger minibatch is split into parts
        whose gradients are added up, which takes less memory. 0: no minibatch is split.
    evaluation_steps
        Steps between evaluations on dev; at least a quarter of an epoch passes between two.
    patience, decays, decay_factor
        After `patience` evaluations without improvement the learning rate is multiplied by `decay_factor`, at most
        `decays` times; then training stops.
    patience_growth
        How patience follows the size of the treebank. With 0, `patience` counts evaluations, as published. Otherwise it
        counts intervals of `evaluation_steps` steps, and is multiplied by (words / 20,000) to the power of this number
        for treebanks of more words than that.
    decay_from
        The weights with which training continues after a decay: the "last" ones, as published, or the "best" ones on
        dev.
    max_steps, max_epochs
        Training stops after this many steps or passes over the treebank, whichever comes first; 0 epochs mean no
        limit. Resumed training may have other limits.
    warm_up
        Steps over which the learning rate rises linearly from 0.
    rate_fall
        How the learning rate falls: in "steps", whenever patience runs out, or "linear", to 0 after `max_epochs`.
    length_noise
        Batches have sentences of similar length. Lengths are first multiplied by exp(x), with x normally distributed
        with this deviation, so that large batches differ between epochs.
    dropout_rise
        Steps over which dropout in BiLSTMs and MLPs rises linearly from 0 to its rate.
    weight_average
        Decay of an exponential moving average of the weights, which is evaluated and saved; 0: the weights themselves.
    precision
        Precision of linear layers, MLPs and transformers in training, on a GPU or a CPU with instructions for it:
        "fp32" or "bf16" (bfloat16). BiLSTMs, scores of trees, losses, weights, the optimiser's state, evaluation and
        parsing are always float32.
    treebank_evenness
        With several treebanks, an epoch sees each one (words of the largest / its words) ** ``treebank_evenness``
        times. 0: once each; 1: equally many words of each.
    """

    seed: Seed = 1
    learning_rate: Weight = 0.002
    beta1: Share = 0.9
    beta2: Share = 0.999
    epsilon: Weight = 1e-8
    weight_decay: Weight = 0.0
    gradient_clip: Weight = 5.0
    batch_words: Positive = 100
    part_cost: Count = 0
    evaluation_steps: Positive = 500
    patience: Positive = 5
    patience_growth: Share = 0.0
    decays: Count = 3
    decay_factor: Weight = 0.25
    decay_from: Literal["last", "best"] = "last"
    max_steps: Positive = 100_000
    max_epochs: Count = 0
    dropout_rise: Count = 0
    weight_average: Share = 0.0
    warm_up: Count = 0
    rate_fall: Literal["steps", "linear"] = "steps"
    length_noise: Annotated[float, Field(ge=0, le=100)] = 0.0
    precision: Literal["fp32", "bf16"] = "fp32"
    treebank_evenness: Annotated[float, Field(ge=0, le=1)] = 0.5

    @model_validator(mode="after")
    def _check_rate_fall(self) -> Self:
        if self.rate_fall == "linear" and not self.max_epochs:
            raise ValueError("rate_fall=linear needs max_epochs, the end of its fall")
        return self


def _of_its_kind(value: Any, info: ValidationInfo) -> Any:
    """Validate settings of an encoder against the kind that they name."""
    if not isinstance(value, Mapping):
        return value
    kind = value.get("kind", DEFAULT.kind)
    if not isinstance(kind, str) or kind not in ENCODERS:
        raise ValueError(f"unknown encoder {reprlib.repr(kind)}; known: {', '.join(ENCODERS)}")
    return checked(ENCODERS[kind].config_type, json.dumps(value) if info.mode == "json" else value)


AnyEncoder = Annotated[EncoderConfig, BeforeValidator(_of_its_kind)]


def _check_decoder(name: str) -> str:
    get_decoder(name)  # ValueError if it is unknown
    return name


@dataclass(frozen=True, config=STRICT)
class ChartConfig:
    """Everything that defines a parser with an exact decoder apart from its vocabulary and weights.

    Attributes
    ----------
    loss : {"hinge", "softmax-margin", "crf"}
        Structured hinge with cost augmentation, as published; or the negative log-likelihood of the gold tree, with
        cost augmentation (Gimpel and Smith 2010) or without. The last two need a decoder with marginals.
    label_bonus
        Relations join the decision: the score of every arc gains this weight times log p of its best relation, in
        parsing and in the loss of trees. 0: relations are chosen once the tree is found, as published.
    """

    kind: ClassVar[str] = "chart"

    decoder: Annotated[str, AfterValidator(_check_decoder)] = "mh4-hybrid"
    single_root: bool = True
    encoder: AnyEncoder = DEFAULT
    scorers: ScorerConfig = ScorerConfig()
    weights: LossWeights = LossWeights()
    training: TrainingConfig = TrainingConfig()
    columns: ColumnWeights = ColumnWeights()
    loss: Loss = "hinge"
    label_bonus: Weight = 0.0

    @model_validator(mode="after")
    def _check_loss(self) -> Self:
        if self.loss != "hinge" and not get_decoder(self.decoder).has_marginals:
            able = [name for name in decoder_names() if get_decoder(name).has_marginals]
            raise ValueError(
                f"loss {self.loss} sums over all trees, which {self.decoder} does not support; {', '.join(able)} can"
            )
        return self


@dataclass(frozen=True, config=STRICT)
class OracleSettings:
    """A transition system, its oracle, and how training explores.

    Attributes
    ----------
    system : str
        One of `mh4.parsers.systems.GREEDY_SYSTEMS`.
    oracle : str
        An oracle of the system; empty: the dynamic one if it exists, otherwise the static one. ``all-pairs``, a static
        oracle, is for Covington parsing only: see `mh4.oracles.covington.costs`. ``chart-order``, another one, is for
        MH4 parsing only: see `mh4.oracles.mh4_chart_order`. ``exact`` and ``approximate`` train
        projective parsers on trees as annotated, the others on the closest projective ones.
    exploration_start, exploration : int, float
        With a dynamic, exact or approximate oracle, follow wrong predictions with this probability after this many
        epochs; before, and otherwise, follow the optimal transition with the highest score (Goldberg & Nivre 2012).
    """

    system: str = "arc-hybrid"
    oracle: str = ""
    exploration_start: Count = 1
    exploration: Probability = 0.9

    @model_validator(mode="after")
    def _check_oracle(self) -> Self:
        system = get_system(self.system)
        object.__setattr__(self, "system", system.name)
        if not self.oracle:
            dynamic = ORACLE_NAMES[DYNAMIC]
            default = dynamic if dynamic in system.oracles else system.oracles[0]
            object.__setattr__(self, "oracle", default)
        if self.oracle not in system.oracles:
            raise ValueError(f"unknown oracle {self.oracle!r} of {self.system}; known: {', '.join(system.oracles)}")
        return self

    def exploration_at(self, epoch: int) -> float:
        """Probability of following a wrong prediction in an epoch, counted from 0."""
        explores = self.oracle in EXPLORING and epoch >= self.exploration_start
        return self.exploration if explores else 0.0


@dataclass(frozen=True, config=STRICT)
class TransitionConfig(OracleSettings):
    """Input and training of a greedy parser with a network.

    Attributes
    ----------
    near_exploration : float
        Once exploration has begun, the probability of following the best wrong prediction if it is behind by less
        than the margin of 1 (Kiperwasser & Goldberg 2016, section 5).
    positions : str
        The tokens whose vectors are read, such as ``"s1,s0,b0"``; empty: the system's default.
    form : str
        How these vectors are scored: "concatenated", by one hidden layer over all, or "biaffine", for two, as in the
        chart decoders; empty: the system's default for its default positions, otherwise concatenated.
    """

    exploration: Probability = 1.0
    near_exploration: Probability = 0.1
    positions: str = ""
    form: str = ""

    @model_validator(mode="after")
    def _check_positions(self) -> Self:
        system = get_system(self.system)
        if not self.positions:
            object.__setattr__(self, "positions", ",".join(system.positions))
        unknown = [name for name in self.position_names if name not in system.tokens]
        if unknown:
            wrong = ", ".join(map(repr, unknown))
            raise ValueError(f"unknown positions {wrong}; {self.system} has: {', '.join(system.tokens)}")
        if not self.form:
            own = self.position_names == list(system.positions)
            object.__setattr__(self, "form", system.form if own else FORMS[0])
        if self.form not in FORMS:
            raise ValueError(f"unknown form {self.form!r}; known: {', '.join(FORMS)}")
        if self.form == "biaffine" and len(self.position_names) != 2:
            raise ValueError(f"biaffine scores are of two positions, not of {self.positions}")
        return self

    def explorations_at(self, epoch: int) -> tuple[float, float]:
        """Probabilities in an epoch of following a wrong prediction that scores higher, and one within the margin."""
        ahead = self.exploration_at(epoch)
        return ahead, self.near_exploration if ahead else 0.0

    @property
    def position_names(self) -> list[str]:
        """The tokens whose vectors are read."""
        return [name.strip() for name in self.positions.split(",")]


@dataclass(frozen=True, config=STRICT)
class GreedyConfig:
    """Everything that defines a greedy parser with the network's scores apart from its vocabulary and weights."""

    kind: ClassVar[str] = "greedy"

    transitions: TransitionConfig = TransitionConfig()
    encoder: AnyEncoder = DEFAULT
    scorers: ScorerConfig = ScorerConfig()
    weights: LossWeights = LossWeights()
    training: TrainingConfig = TrainingConfig()
    columns: ColumnWeights = ColumnWeights()

    @model_validator(mode="after")
    def _check_members(self) -> Self:
        if self.scorers.members > 1:
            raise ValueError("several members need a parser with a decoder, which averages their scores")
        return self


@dataclass(frozen=True, config=STRICT)
class PerceptronConfig(OracleSettings):
    """Everything that defines a perceptron parser apart from its vocabulary and weights.

    Attributes
    ----------
    iterations : int
        Epochs; the best one on dev is kept.
    tag_column : {"upos", "xpos"}
        The parts of speech used as features.
    ties : {"best", "all", "any"}
        Which of several optimal transitions a wrong decision promotes and training follows. "best": the one with the
        highest score; "all": promotes all in equal shares, follows the one with the highest score; "any": one drawn at
        random, while any other decision counts as wrong.
    """

    kind: ClassVar[str] = "perceptron"

    system: str = "arc-eager"
    iterations: Positive = 15
    ties: Ties = "best"
    seed: Seed = 1
    tag_column: TagColumn = "upos"


NetworkParserConfig = ChartConfig | GreedyConfig
Config = ChartConfig | GreedyConfig | PerceptronConfig
C = TypeVar("C", bound=Config)
KINDS: dict[str, type[Config]] = {kind.kind: kind for kind in (ChartConfig, GreedyConfig, PerceptronConfig)}


def as_dict(config: Config) -> dict[str, Any]:
    """JSON-ready content; `from_dict` reads it back."""
    return {"format": FORMAT, "kind": config.kind, **asdict(config)}


def from_dict(data: Mapping[str, Any]) -> Config:
    """The configuration, of any kind, in the contents of a config.json; missing settings have their defaults.

    ValueError: An unknown format, kind or option, the message listing the known ones; a value out of range or of
    another type.
    """
    values = dict(data)
    found = values.pop("format", None)
    if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= FORMAT:
        raise ValueError(f"model format {reprlib.repr(found)}; this version reads formats 1 to {FORMAT}")
    if found == 1:
        kind = "greedy" if "transitions" in values else "chart"
        kind = "perceptron" if values.pop("scorer", None) == "perceptron" else kind
    else:
        kind = values.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"unknown kind of model {reprlib.repr(kind)}; known: {', '.join(KINDS)}")
    if found == 2 and isinstance(network := values.get("network"), dict):
        values["network"] = _with_analysis_weight(network)
    if found <= 3 and kind != PerceptronConfig.kind:
        values = _in_today_s_parts(KINDS[kind], values)
    elif isinstance(weights := values.get("weights"), dict):
        values["weights"] = {name: weight for name, weight in weights.items() if name != FORMER}
    return checked(KINDS[kind], json.dumps(values))


def _with_analysis_weight(network: Mapping[str, Any]) -> dict[str, Any]:
    """Convert `network` of format 2: one analysis weight replaces those of UPOS, XPOS and FEATS."""
    rest = dict(network)
    weights = [rest.pop(name, 0.0) for name in ("upos_weight", "xpos_weight", "feats_weight")]
    return rest | {"analysis_weight": next(filter(None, weights), 0.0)}


def _in_today_s_parts(config_type: type[Config], values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert settings up to format 3 from the parts that they had to the present ones."""
    whole = dict(values)
    settings: dict[str, Any] = {**COLUMNS_UP_TO_3}
    for part in ("network", "training"):
        own = whole.pop(part, {})
        if not isinstance(own, dict):
            raise ValueError(f"{part}: must be an object; got {reprlib.repr(own)}")
        settings |= own
    settings.pop(FORMER, None)
    return whole | _in_parts(config_type, settings)


def make_config(config_type: type[C], settings: Mapping[str, Any]) -> C:
    """A configuration with some settings, given by name, and defaults for the others; numbers may be strings.

    ValueError: An unknown name, the message listing the known ones; a value out of range or of another type.
    """
    return checked(config_type, _in_parts(config_type, settings))


def _in_parts(config_type: type[Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    places = dict(_places(config_type))
    values: dict[str, Any] = {}
    for name, value in settings.items():
        if name not in places:
            raise ValueError(f"unknown setting {name!r}{hint(SETTINGS, [name])}; known: {', '.join(sorted(places))}")
        part = values
        *parts, last = places[name]
        for step in parts:
            part = part.setdefault(step, {})
        part[last] = value
    return values


def differing(config: C, other: C) -> list[str]:
    """Settings of a configuration that another one lacks or has with another value, as "NAME=VALUE"."""
    own, others = _by_name(config), _by_name(other)
    return [f"{name}={value}" for name, value in own.items() if name not in others or others[name] != value]


def parse_settings(settings: Iterable[str]) -> dict[str, str]:
    """Parse settings of the form "NAME=VALUE"; the last value of a repeated name counts."""
    pairs = [setting.partition("=") for setting in settings]
    for name, equals, _ in pairs:
        if not equals:
            raise ValueError(f"a setting has the form NAME=VALUE, not {name!r}")
    return {name: value for name, _, value in pairs}


def _places(kind: type[Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The name of each setting, and its path in the configuration; the kind of encoder is named ``encoder``."""
    for field in fields(kind):
        if isinstance(field.default, EncoderConfig):
            for encoder in ENCODERS.values():
                for own in fields(encoder.config_type):
                    yield field.name if own.name == "kind" else own.name, (field.name, own.name)
        elif is_dataclass(field.default):
            yield from ((name, (field.name, *inner)) for name, inner in _places(type(field.default)))
        else:
            yield field.name, (field.name,)


def _by_name(config: Config) -> dict[str, Any]:
    """All settings by name, as for `make_config`; None for those of other kinds of encoders."""
    values: dict[str, Any] = {}
    for name, place in _places(type(config)):
        part: Any = config
        for step in place:
            part = getattr(part, step, None)
        values[name] = part
    return values
