"""Commands and options that users of other programs may try, and what to write instead."""

import re

from mh4.data.guesses import by_name, hint

COMMANDS = by_name(
    {
        "mh4 parse MODEL INPUT, or mh4 parse MODEL --text FILE": "tag tokenize segment predict annotate run process",
        "mh4 train TRAIN --dev DEV, which makes a model": "fit",
        "mh4 download --index INDEX, which lists models": "models list pull",
        "mh4 eval GOLD SYSTEM": "evaluate score test compare",
        "mh4 transform --to CLASS": "projectivize projectivise convert",
        "mh4 --help": "help",
        "mh4 --version": "version",
        "mh4 serve MODEL": "server rest http",
        "mh4 eval --model MODEL GOLD; MODEL/meta.json describes it": "info show describe",
        "mh4.decoders.get_decoder(NAME).decode(scores), in Python": "decode",
    }
)
OPTIONS = by_name(
    {
        "MODEL as the first argument": "--model -m --model-path",
        "INPUT after the model": "-i --infile --input-file",
        "--output FILE": "--out --outfile --output-file --output-dir --html --svg",
        "--output FILE.json, or --output json": "--json --jsonl --output-format",
        "--input text to read raw text, or --output FILE.json to write JSON": "--format",
        "--input vertical or --input horizontal": "--words --vertical --horizontal --tokenized --pretokenized",
        "--text FILE, or --text - for standard input": "--raw --tokenize --tokenizer --txt",
        "--device cuda": "--gpu --cuda --use-gpu",
        "--threads N": "--jobs -j --num-threads --n-threads --num-workers --workers --processes",
        "--batch-words N": "--batch-size --batch",
        "--k-best K": "--nbest --n-best --kbest --topk --k -k",
        "--confidence": "--probabilities --probability --probs --scores --margins",
        "--search beam:K": "--beam --beam-size",
        "--predict COLUMN,…": "--tag --tags --parse --lemmas",
        "--decoder NAME": "--parser --algorithm",
        "TRAIN as the argument, --dev DEV": "--train --train-file",
        "--encoder NAME": "--bert --transformer --pretrained",
        "--vectors FILE": "--embeddings --word-vectors --fasttext --word2vec --glove --wordvec-file",
        "--set learning_rate=VALUE": "--lr --learning-rate",
    }
)
OF_TRAINING = by_name(
    {
        "--set batch_words=N": "--batch-size --batch --batch-words",
        "--output FOLDER": "--model -m --model-path --output-dir --save-dir --save-name --name",
        "TRAIN as the argument": "-i --infile --input --input-file --text",
        "--dev DEV": "--eval-file --valid --validation --dev-file --devel -d",
        "mh4 eval --model FOLDER TEST afterwards": "--test --test-file",
        "--no-segmenter, to train none": "--tokenize --tokenizer --pretokenized --tokenized",
    }
)
OF_EVALUATION = by_name(
    {
        "mh4 eval GOLD SYSTEM": "--gold --system --pred --predicted -g -s",
        "--model MODEL": "-m",
        "--json": "--format --output-format",
    }
)
OF_SERVING = by_name({"--port N": "-p", "--host 0.0.0.0, which answers the whole network": "--public --bind --share"})
_UNKNOWN = re.compile(r"^No such (?:command|option):? '?(?P<name>[^\s']+)'?")


def advised(command: str, problem: str) -> str:
    """A message about a usage error, with advice if it is about a command or option in these tables."""
    found = _UNKNOWN.match(problem)
    own = {"mh4 train": OF_TRAINING, "mh4 eval": OF_EVALUATION, "mh4 serve": OF_SERVING}.get(command, {})
    advice = hint({**COMMANDS, **OPTIONS, **own}, [found["name"].replace("_", "-")]) if found else ""
    return found[0] + advice if found and advice else problem
