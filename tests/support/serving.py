"""The mh4 server in a thread, and requests to it."""

import json
import threading
from contextlib import contextmanager
from http.client import HTTPConnection
from urllib.parse import urlencode

from mh4.service.server import listening, new_server
from mh4.service.web import Service


class Answer:
    """Status, headers and body of a response."""

    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        assert self.status == 200, self.text
        return json.loads(self.body)

    @property
    def result(self):
        return self.json["result"]


class Client:
    """Sends requests, each over a new connection."""

    def __init__(self, port, service, logged, server):
        self.port, self.service, self.logged, self.server = port, service, logged, server

    def send(self, method, path, body=None, headers=None):
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, headers or {})
        with connection.getresponse() as response:
            return Answer(response)

    def get(self, path, **parameters):
        return self.send("GET", path + ("?" + urlencode(parameters) if parameters else ""))

    def post(self, path, **parameters):
        return self.send("POST", path, urlencode(parameters), {"Content-Type": "application/x-www-form-urlencoded"})

    def process(self, data, **parameters):
        return self.post("/process", data=data, **parameters)


@contextmanager
def running(models, hosts=None, **limits):
    """Run a server; yield a client that also has the server, the `Service` and the list of its log entries."""
    ready, logged = threading.Event(), []
    service = Service(models, log=lambda **values: logged.append(values), **limits)
    at = listening("127.0.0.1", 0)
    server = new_server(service.app(hosts), ready.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [at]})
    thread.start()
    try:
        assert ready.wait(30)
        yield Client(at.getsockname()[1], service, logged, server)
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()
