"""Loads models from Hugging Face and uploads them there, with `huggingface_hub` (extra ``mh4[hub]``).

Parsers do not inherit from `huggingface_hub.ModelHubMixin`, which would have to be imported with each of them and
stores constructor arguments.
"""

from __future__ import annotations

import re
import tempfile
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from mh4.data.errors import DataError
from mh4.data.files import atomic_output
from mh4.data.guesses import LOADING, guided
from mh4.machine import reason_of, require

from ..checksums import SUMS, listed_files
from ..folder import ENCODER, REPLACED
from ..loading import Loaded
from .card import CARD, make_card

EXTRA = "hub"
FILES = ("*.json", "*.safetensors", SUMS)  # no code, no pickles, no model of UDPipe
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


class Shared(Loaded):
    """Base of parsers that can be shared on Hugging Face."""

    meta: Mapping[str, Any]

    @abstractmethod
    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write a model folder."""

    @classmethod
    @guided(LOADING)
    def from_pretrained(
        cls,
        name: str | Path,
        *,
        revision: str | None = None,
        token: str | bool | None = None,
        cache_dir: str | Path | None = None,
        local_files_only: bool = False,
        device: str = "auto",
        threads: int | None = None,
        search: str = "exact",
    ) -> Self:
        """Load a model folder, a downloaded model, or one from Hugging Face (extra ``mh4[hub]``).

        Parameters
        ----------
        name
            What `load` takes or, if there is no such folder, ``"USER/NAME"`` on the hub. Only JSON and safetensors
            files are fetched from there; loading runs no code.
        revision, token, cache_dir, local_files_only
            For `huggingface_hub.snapshot_download`.
        device, threads, search
            See `load`.

        Raises
        ------
        DataError
            The model does not exist, it cannot be fetched, or a file is damaged.
        ValueError
            ``huggingface_hub`` is needed but not installed.
        """
        if not Path(name).exists() and _REPOSITORY.fullmatch(str(name)):
            hub = require("huggingface_hub", EXTRA)
            options: dict[str, Any] = {"revision": revision, "token": token, "cache_dir": cache_dir}
            try:
                name = hub.snapshot_download(
                    str(name), allow_patterns=list(FILES), local_files_only=local_files_only, **options
                )
            except Exception as error:  # unknown name, no network, no permission: of many types
                reason = reason_of(error)
                raise DataError(f"{name}: no such folder, and it cannot be fetched from the hub: {reason}") from None
        return cls.load(name, device=device, threads=threads, search=search)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write a model folder with a card, README.md, replacing any model in it; for errors see `save`."""
        self._save_with_card(folder)

    def _save_with_card(self, folder: str | Path, load: str | None = None) -> None:
        self.save(folder, overwrite=True)
        folder = Path(folder)
        with atomic_output(folder / CARD) as stream:
            stream.write(make_card(folder.resolve().name, self.meta, dict(listed_files(folder)), load))

    def push_to_hub(
        self,
        repository: str,
        *,
        private: bool | None = None,
        token: str | bool | None = None,
        revision: str | None = None,
        commit_message: str = "Upload model",
    ) -> str:
        """Upload the model and its card to Hugging Face (extra ``mh4[hub]``); returns the URL of the commit.

        Of a model that the repository holds already, no file stays; other files do, except README.md, the card.

        Parameters
        ----------
        repository
            ``"USER/NAME"``; created if it does not exist.
        private, token, revision, commit_message
            For `huggingface_hub.HfApi`.

        Raises
        ------
        ValueError
            The name is invalid, ``huggingface_hub`` is not installed, or the parser is an ensemble.
        """
        if not _REPOSITORY.fullmatch(repository):
            raise ValueError(f'the name of a repository has the form "USER/NAME", not {repository!r}')
        api = require("huggingface_hub", EXTRA).HfApi(token=token)
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(parent, repository.rpartition("/")[2])
            self._save_with_card(folder, f'mh4.Parser.from_pretrained("{repository}")')
            api.create_repo(repository, private=private, exist_ok=True)
            commit = api.upload_folder(
                repo_id=repository,
                folder_path=folder,
                revision=revision,
                commit_message=commit_message,
                delete_patterns=[*REPLACED, f"{ENCODER}*"],  # never deletes what is uploaded
            )
        return str(commit.commit_url)
