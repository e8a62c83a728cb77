"""A headless Chromium that a test drives over the DevTools protocol, through a pair of pipes.

Contract: with Chromium() as browser: browser.open(path) loads a page and waits for it; evaluate() gives the
value of a JavaScript expression. What the page asks for from outside and what it says on the console are in
`requests` and `complaints`. Only the standard library is needed. As a program it takes a picture:
chromium.py FILE.html FRAGMENT FILE.png WIDTH HEIGHT.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from patience import seconds, until

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
    *("--hide-scrollbars", "--remote-debugging-pipe"),
)


class Chromium:
    def __init__(self, width: int = 1300, height: int = 900) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._folder = tempfile.mkdtemp(prefix="spinloom-chromium-")
        from_us, self._out = os.pipe()
        self._in, to_us = os.pipe()

        def commands_at_3_and_4() -> None:
            first, second = os.dup(from_us), os.dup(to_us)  # neither is then 3 or 4 by chance
            os.dup2(first, 3)
            os.dup2(second, 4)

        self._process = subprocess.Popen(
            [str(PROGRAM), *OPTIONS, f"--user-data-dir={self._folder}", f"--window-size={width},{height}"],
            preexec_fn=commands_at_3_and_4,
            pass_fds=(3, 4),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self._folder},
        )
        os.close(from_us)
        os.close(to_us)
        self._rest = b""
        self._number = 0
        self._session = ""
        try:
            self._attach(width, height)
        except BaseException:
            self.__exit__()
            raise

    def _attach(self, width: int, height: int) -> None:
        target = self.call("Target.createTarget", url="about:blank")
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(seconds(10))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _next(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._in], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError("Chromium does not answer")
            more = os.read(self._in, 1 << 20)
            if not more:
                raise RuntimeError("Chromium has ended")
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        found = json.loads(message)
        self._notice(found)
        return found

    def _notice(self, message: dict[str, Any]) -> None:
        about = message.get("params", {})
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(about["request"]["url"])
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(about["exceptionDetails"]))
            case "Log.entryAdded":
                self.complaints.append(about["entry"]["text"])
            case "Runtime.consoleAPICalled":
                self.complaints.append(json.dumps(about["args"]))

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + seconds(60)
        while True:
            answer = self._next(end)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, path: Path, fragment: str = "") -> None:
        """Loads a page in place of the one before, and forgets what that one asked for."""
        url = path.as_uri()
        self._navigate("about:blank")
        self.requests.clear()
        self.complaints.clear()
        self._navigate(url + fragment)
        self.requests[:] = [each for each in self.requests if not each.startswith(url)]

    def _navigate(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        there = f"location.href === {json.dumps(url)} && document.readyState === 'complete'"
        if not until(lambda: self.evaluate(there)):
            raise TimeoutError(f"{url} does not load")

    def evaluate(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description", "exception"))
        return answer["result"].get("value")

    def move(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {}
        codes = {
            "Tab": 9,
            "Escape": 27,
            " ": 32,
            "ArrowLeft": 37,
            "ArrowUp": 38,
            "ArrowRight": 39,
            "ArrowDown": 40,
        }
        more = {"windowsVirtualKeyCode": codes[key]} if key in codes else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **more)

    def dark(self, wanted: bool) -> None:
        value = "dark" if wanted else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def picture(self, path: Path) -> None:
        shot = self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(shot["data"]))


def main(page: str, fragment: str, picture: str, width: str, height: str) -> None:
    with Chromium(int(width), int(height)) as browser:
        browser.open(Path(page).resolve(), f"#{fragment}")
        browser.picture(Path(picture))


if __name__ == "__main__":
    main(*sys.argv[1:])
