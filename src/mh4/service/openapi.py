"""The OpenAPI description of the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from mh4 import __version__
from mh4.parsers.request import Request

from .processing import READERS, WRITERS

_PROTOCOL = {
    "data": "Text, or sentences in the format `input`; required.",
    "model": "A name from /models, its beginning up to a hyphen, or a language; by default the first model.",
    "tokenizer": "Data is raw text to split into words. Options, separated by ;: presegmented (a sentence in "
    "each line), ranges (places of tokens in MISC), normalized_spaces; others are ignored, with a warning.",
    "tagger": "Predict UPOS, XPOS, FEATS and LEMMA.",
    "parser": "Predict HEAD and DEPREL.",
    "input": f"Format of data, unless it is raw text: {', '.join(READERS)}.",
    "output": f"Format of the result: {', '.join(WRITERS)}.",
    "min_confidence": "Write _ for HEAD and DEPREL of less certain words.",
}


def openapi(models: Sequence[str]) -> dict[str, Any]:
    """The OpenAPI description of a server with these models."""
    options = {one.name: one.metadata["help"] for one in fields(Request)}
    known = {"model": list(models), "input": list(READERS), "output": list(WRITERS)}
    described = {
        name: {"type": "string", "description": text} | ({"examples": known[name]} if name in known else {})
        for name, text in (_PROTOCOL | options).items()
    }
    query = [
        {"name": name, "in": "query", "schema": {"type": own["type"]}, "description": own["description"]}
        for name, own in described.items()
    ]
    form = {"schema": {"type": "object", "properties": described, "required": ["data"]}}
    answer = {
        "type": "object",
        "properties": {
            "model": {"type": "string"},
            "acknowledgements": {"type": "array", "items": {"type": "string"}},
            "result": {"description": "A string; with output=json an array of sentences."},
            "warnings": {"type": "array", "items": {"type": "string"}},
        },
    }
    line = {"content": {"text/plain": {"schema": {"type": "string"}}}}
    responses = {
        "200": {"description": "The result.", "content": {"application/json": {"schema": answer}}},
        "400": {"description": "What is wrong with the request, in one line.", **line},
        "413": {"description": "The body is too large.", **line},
        "503": {"description": "Too much waits; Retry-After says when to try again.", **line},
    }
    types = ("multipart/form-data", "application/x-www-form-urlencoded")

    def shown(summary: str, kind: str) -> dict[str, Any]:
        return {"get": {"summary": summary, "responses": {"200": {"description": kind}}}}

    return {
        "openapi": "3.1.0",
        "info": {"title": "mh4", "version": __version__, "description": "Exact dependency parsing; UDPipe's protocol."},
        "paths": {
            "/process": {
                "get": {"summary": "Process text or sentences.", "parameters": query, "responses": responses},
                "post": {
                    "summary": "Process text or sentences.",
                    "requestBody": {"content": dict.fromkeys(types, form)},
                    "responses": responses,
                },
            },
            "/models": shown("The models and what they can do.", "JSON"),
            "/health": shown("Whether the server answers.", "JSON"),
            "/metrics": shown("Counters.", "Prometheus's text format"),
        },
    }
