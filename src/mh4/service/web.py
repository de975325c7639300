"""The server's routes: UDPipe's protocol (/models, /process), the web page, and /health and /metrics for operators."""

from __future__ import annotations

import asyncio
import binascii
import json
import logging
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from http import HTTPStatus
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mh4.data.errors import shortened

from .batcher import REQUEST, Batcher, OverloadedError
from .metrics import Metrics, log_line
from .openapi import openapi
from .processing import Asked
from .served_models import ServedModel, ServedModels

MOST_BYTES = 4 << 20  # of a body
FEW = 8000  # characters, read in about 2 ms; on a busy server, handing them to another thread takes as long
FEW_WORDS = 500  # of all trees together, written in about as long, except as pictures
MOST_FIELDS = 100
MOST_HELD = 256 << 20  # bytes of all bodies together
MOST_WAITING = 100_000  # words
MOST_JOINT = 20  # texts whose boundaries trees choose, one after the other
RECEIVE_SECONDS = 30
ANSWER_SECONDS = 120
RETRY_SECONDS = 2
LONGEST_LINE = 1000  # characters of an error
_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_OF_PAGE = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}
_TEXT = ('format="text"', "the parameter tokenizer")  # how to ask for raw text: in Python, and in requests
log = logging.getLogger("mh4")
GONE = 499  # status in logs and metrics, as in nginx: the client has left


class Service:
    """Answers requests, with the models, the queue and the metrics.

    Parameters
    ----------
    models : ServedModels
    most_bytes, most_held, most_waiting, receive_seconds, answer_seconds
        Limits: bytes of a body and of all bodies together, waiting words, and seconds to receive a body and to answer a
        request.
    log
        Called with the log entry of each request, as keyword arguments.
    """

    def __init__(
        self,
        models: ServedModels,
        most_bytes: int = MOST_BYTES,
        most_held: int = MOST_HELD,
        most_waiting: int = MOST_WAITING,
        receive_seconds: float = RECEIVE_SECONDS,
        answer_seconds: float = ANSWER_SECONDS,
        log: Callable[..., object] = log_line,
    ) -> None:
        self.models = models
        self.most_bytes = most_bytes
        self.most_held = most_held
        self.receive_seconds = receive_seconds
        self.answer_seconds = answer_seconds
        self.log = log
        self.metrics = Metrics()
        self._count = 0
        self._held = 0  # bytes of the bodies of all requests under way
        self._joining = 0  # requests in `_joint`
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="mh4-read")  # and writers
        self._joint = ThreadPoolExecutor(1, thread_name_prefix="mh4-joint")  # parses to find boundaries
        self._parsing = ThreadPoolExecutor(models.workers, thread_name_prefix="mh4-parse")
        self.batcher = Batcher(self._parsing, most_waiting, models.workers)

    def release(self, size: int) -> None:
        """Subtract the bytes of a request that has ended."""
        self._held -= size

    async def list_models(self, request: Request) -> Response:
        """/models"""
        served = self.models.models
        return JSONResponse(
            {
                "models": {model.name: model.abilities for model in served},
                "default_model": self.models.default.name,
                "extensions": {model.name: model.extensions for model in served},
            }
        )

    async def process(self, request: Request) -> Response:
        """/process"""
        with self._stage("receive"):
            parameters = await self._parameters(request)
        model = self.models.find(parameters.get("model"))
        if model is None:
            raise HTTPException(400, f"no model is called {shortened(parameters['model'])!r}; see /models")
        if "data" not in parameters:
            raise HTTPException(400, "the parameter 'data' is required")
        self._count += 1
        number = self._count
        try:
            with self._stage("read"):
                few = len(parameters["data"]) <= FEW and "tokenizer" not in parameters and self.models.in_memory(model)
                read = partial(self._read, model, parameters, f"{REQUEST}{number}")
                joint = parameters.get("boundaries") == "joint"
                parser, asked, sentences = await (self._read_joint(read) if joint else self._run(few, read))
            answers = None
            if asked.request is not None and sentences:
                with self._stage("parse"):
                    answers = await self.batcher.answer(parser, sentences, asked.request)
            words = sum(map(len, sentences))
            with self._stage("write"):
                few = few and words * asked.trees <= FEW_WORDS and asked.output != "svg"
                answer = await self._run(few, lambda: _as_json(asked.write(sentences, answers, model)))
        except OverloadedError:
            raise _busy() from None
        except (ValueError, TypeError) as error:
            raise HTTPException(400, str(error).replace(*_TEXT).replace(str(model.folder), model.name)) from None
        self.metrics.words.labels(model.name).inc(words)
        request.state.logged |= {"request": number, "model": model.name, "words": words}
        return Response(answer, media_type="application/json")

    async def health(self, request: Request) -> Response:
        """/health"""
        return JSONResponse({"status": "ok"})

    async def show_metrics(self, request: Request) -> Response:
        """/metrics"""
        self.metrics.waiting.set(self.batcher.waiting_words)
        return PlainTextResponse(self.metrics.text())

    async def page(self, request: Request) -> Response:
        """/ and /page/NAME: the web page and its files."""
        name = request.path_params.get("name", "index.html")
        parts = {path.name: path for path in (files("mh4.service") / "page").iterdir()}
        kind = _KINDS.get(name.rpartition(".")[2])
        if kind is None or name not in parts:  # paths are never built from the request
            raise HTTPException(404)
        return Response(parts[name].read_bytes(), media_type=kind, headers=_OF_PAGE)

    async def describe(self, request: Request) -> Response:
        """/openapi.json"""
        return JSONResponse(openapi([model.name for model in self.models.models]))

    def app(self, hosts: list[str] | None = None) -> Starlette:
        """The application, which answers requests to these hosts only, by default to all."""
        both = ["GET", "POST"]
        routes = [
            Route("/models", self.list_models, methods=both),
            Route("/process", self.process, methods=both),
            Route("/health", self.health),
            Route("/metrics", self.show_metrics),
            Route("/openapi.json", self.describe),
            Route("/", self.page),
            Route("/page/{name}", self.page),
        ]
        middleware = [Middleware(_Watched, service=self)]
        if hosts is not None:
            middleware.append(Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False))

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            yield
            self._readers.shutdown()
            self._joint.shutdown()
            self._parsing.shutdown()

        handlers: dict[Any, Any] = {HTTPException: _refused, ClientDisconnect: _left}
        return Starlette(routes=routes, middleware=middleware, exception_handlers=handlers, lifespan=lifespan)

    @contextmanager
    def _stage(self, name: str) -> Any:
        start = time.perf_counter()
        yield
        self.metrics.seconds.labels(name).observe(time.perf_counter() - start)

    def _read(
        self,
        model: ServedModel,
        parameters: Mapping[str, str],
        source: str,
        before_batch: Callable[[], object] | None = None,
    ) -> Any:
        try:
            parser = self.models.parser(model)
        except (ValueError, OSError) as error:  # not the client's fault: the folder has changed since the start
            log.error("%s: cannot be loaded again: %s", model.name, error)
            raise HTTPException(500, f"the model {model.name} cannot be loaded") from None
        asked = Asked.of(parameters, parser)
        return parser, asked, asked.read(parser, source, before_batch)

    async def _read_joint(self, read: Callable[..., Any]) -> Any:
        """Read a text whose boundaries trees choose; if the caller is cancelled, this stops soon."""
        gone = threading.Event()

        def stop_if_gone() -> None:
            if gone.is_set():
                raise CancelledError

        if self._joining == MOST_JOINT:
            raise OverloadedError
        self._joining += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._joint, read, stop_if_gone)
        finally:
            self._joining -= 1
            gone.set()

    async def _run(self, at_once: bool, function: Any, *arguments: Any) -> Any:
        """Call a function in a reader thread or, ``at_once``, in this one, which is quicker for little work."""
        if at_once:
            return function(*arguments)
        return await asyncio.get_running_loop().run_in_executor(self._readers, function, *arguments)

    async def _parameters(self, request: Request) -> dict[str, str]:
        """The parameters in the address and the body, which takes precedence; blank ones are included."""
        parameters = _fields(request.url.query, "the address")
        if request.method == "POST":
            body = await self._body(request)
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            packed = request.headers.get("content-encoding", "identity").strip().lower()
            if packed != "identity":
                raise HTTPException(400, f"a body in {shortened(packed) or '<none>'} is not read; send it uncompressed")
            if kind == "multipart/form-data":
                parameters |= await self._parts(request, body)
            elif kind == "application/x-www-form-urlencoded":
                parameters |= await self._run(len(body) <= FEW, lambda: _fields(_text(body, "the body"), "the body"))
            elif body or kind:
                shown = shortened(kind) or "<none>"
                raise HTTPException(
                    400, f"a body of type {shown} is not read; send multipart/form-data or a form that is urlencoded"
                )
        return parameters

    async def _body(self, request: Request) -> bytes:
        length = request.headers.get("content-length", "0")
        body = bytearray()
        try:
            async with asyncio.timeout(self.receive_seconds):
                if not length.isdigit() or int(length) <= self.most_bytes:
                    async for chunk in request.stream():
                        body += chunk
                        self._held += len(chunk)
                        request.state.held += len(chunk)
                        if self._held > self.most_held:
                            raise _busy()
                        if len(body) > self.most_bytes:
                            break
                    else:
                        return bytes(body)
        except TimeoutError:
            raise HTTPException(408, "the body did not come in time", {"Connection": "close"}) from None
        raise HTTPException(
            413, f"the body is larger than {self.most_bytes:,} bytes; send it in parts", {"Connection": "close"}
        )

    async def _parts(self, request: Request, body: bytes) -> dict[str, str]:
        async def stream() -> AsyncGenerator[bytes, None]:
            yield body

        reader = _Whole(
            request.headers, stream(), max_files=MOST_FIELDS, max_fields=MOST_FIELDS, max_part_size=self.most_bytes
        )
        reader.spool_max_size = self.most_bytes
        found = {}
        try:
            form = await reader.parse()
            if not reader.ended:
                raise ValueError("its end is missing")
            for name, part in form.multi_items():
                if isinstance(part, UploadFile):
                    content = _decoded(await part.read(), part.headers.get("content-transfer-encoding", ""))
                    found[name] = _text(content, f"the file {shortened(name)!r}")
                else:
                    # Python's email package, which UDPipe's own client is built on, ends every line with CR LF.
                    found[name] = part.replace("\r\n", "\n")
        except (MultiPartException, KeyError, LookupError, ValueError) as error:
            raise HTTPException(400, f"the body is no multipart/form-data: {shortened(str(error))}") from None
        await form.close()
        return found


class _Whole(MultiPartParser):
    """A multipart parser that decodes fields, and tells whether the closing boundary has been reached."""

    ended = False

    def on_part_end(self) -> None:
        part = self._current_part
        if part.file is None:
            encoding = dict(part.item_headers).get(b"content-transfer-encoding", b"")
            part.data = bytearray(_decoded(bytes(part.data), encoding.decode("latin-1")))
            _text(part.data, "a field")  # Starlette would decode fields that are not UTF-8 as Latin-1
        super().on_part_end()

    def on_end(self) -> None:
        self.ended = True


class _Watched:
    """Middleware around all routes: time limit, header for pages of other sites (CORS), log and metrics."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), GONE
        logged: dict[str, Any] = {}
        state = scope.setdefault("state", {})
        state |= {"logged": logged, "held": 0}

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"access-control-allow-origin", b"*")]
            await send(message)

        try:
            await self._answered(scope, receive, sending)
        except TimeoutError:
            if status == GONE:  # nothing has been sent
                with suppress(OSError):
                    await PlainTextResponse("this takes too long; send less at once", 503)(scope, receive, sending)
            else:
                raise
        except Exception:
            status = HTTPStatus.INTERNAL_SERVER_ERROR  # sent by the middleware around this one
            raise
        finally:
            self.service.release(state["held"])
            known = "other" if "endpoint" not in scope else "/page" if scope["path_params"] else scope["path"]
            self.service.metrics.requests.labels(known, status).inc()
            milliseconds = round(1000 * (time.perf_counter() - start), 1)
            self.service.log(method=scope["method"], path=known, status=status, ms=milliseconds, **logged)

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application; cancel it if it takes too long or if the client disconnects."""
        received = asyncio.Event()

        async def receiving() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect" or not message.get("more_body", False):
                received.set()
            return message

        async def watch() -> None:
            await received.wait()
            while (await receive())["type"] != "http.disconnect":
                pass

        if scope["method"] == "GET":
            received.set()
        async with asyncio.timeout(self.service.answer_seconds):
            answering = asyncio.ensure_future(self.app(scope, receiving, send))
            watching = asyncio.create_task(watch())
            try:
                await asyncio.wait({answering, watching}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                watching.cancel()
                if not answering.done():
                    answering.cancel()
            with suppress(asyncio.CancelledError):
                await answering


def _busy() -> HTTPException:
    return HTTPException(503, "too much waits to be parsed; try again soon", {"Retry-After": str(RETRY_SECONDS)})


def _fields(text: str, where: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS))
    except ValueError:
        raise HTTPException(
            400, f"{where} cannot be read: UTF-8 in at most {MOST_FIELDS} NAME=VALUE is needed"
        ) from None


def _decoded(content: bytes, encoding: str) -> bytes:
    """The content of a part in a Content-Transfer-Encoding; a ValueError if this is unknown, or does not fit."""
    encoding = encoding.strip().lower()
    if encoding == "base64":
        return binascii.a2b_base64(content)
    if encoding == "quoted-printable":
        return binascii.a2b_qp(content)
    if encoding not in ("", "7bit", "8bit", "binary"):
        raise ValueError(f"Content-Transfer-Encoding {shortened(encoding, 20)!r} is unknown")
    return content


def _text(content: bytes | bytearray, where: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise HTTPException(400, f"{where} is not UTF-8") from None


def _as_json(answer: Mapping[str, Any]) -> bytes:
    return json.dumps(answer, ensure_ascii=False, allow_nan=False).encode()


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    line = error.detail if error.status_code != 404 else f"there is no {shortened(request.url.path)!r} here"
    line = "".join(character if character.isprintable() else " " for character in line)
    return PlainTextResponse(f"{shortened(line, LONGEST_LINE)}\n", error.status_code, headers=dict(error.headers or {}))


async def _left(request: Request, error: Exception) -> Response:
    return PlainTextResponse("the client has left\n", 400)
