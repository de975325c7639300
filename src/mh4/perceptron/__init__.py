"""Greedy parsers scored by an averaged perceptron over the published feature templates, all compiled.

The transition systems are those of `mh4.greedy`; here are the weights of hashed features (`weights`), the loops that
parse and train (`loops`), and what a user holds: `training`, `parser`, `config`, `vocabulary`.
"""
