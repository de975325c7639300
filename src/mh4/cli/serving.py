"""``mh4 serve``."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer

from mh4.machine import require

from .options import Device, DeviceOption, ThreadsOption, say, set_threads
from .parsing import SearchOption

LOOPBACK = ("127.0.0.1", "localhost", "::1")

ModelsArgument = Annotated[
    list[str],
    typer.Argument(help="Model folders, the default first; NAME=FOLDER renames one.", metavar="MODEL..."),
]
HostOption = Annotated[
    str, typer.Option(help="Address to listen on; by default, only programs on this machine can connect.")
]
PortOption = Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 chooses a free one.")]
OpenOption = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]
MaxModelsOption = Annotated[
    int | None,
    typer.Option(min=1, help="Keep at most this many models in memory; load others on demand.", show_default="all"),
]


def serve(
    models: ModelsArgument,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8001,
    open_page: OpenOption = False,
    max_models: MaxModelsOption = None,
    search: SearchOption = "exact",
    device: DeviceOption = Device.auto,
    threads: ThreadsOption = None,
) -> None:
    """Serve a page for the browser, and answer programs over HTTP in UDPipe's protocol (/models, /process)."""
    require("starlette", "serve")
    require("uvicorn", "serve")
    require("python_multipart", "serve")
    require("prometheus_client", "serve")
    from mh4.service.served_models import ServedModels
    from mh4.service.server import listening
    from mh4.service.server import serve as run
    from mh4.service.web import Service

    at = listening(host, port)
    set_threads(threads)
    served = ServedModels(models, max_models, device=device.value, search=search, threads=threads)
    served.warm_up()
    hosts = [*LOOPBACK, "[::1]"] if host in LOOPBACK else None
    shown = f"[{host}]" if ":" in host else host
    names = ", ".join(model.name for model in served.models)
    address = f"http://{shown}:{at.getsockname()[1]}"

    def announce() -> None:
        say(f"mh4: serving {names} at {address} (Ctrl-C stops it)")
        if open_page:
            webbrowser.open(address)

    run(Service(served).app(hosts), at, announce)
