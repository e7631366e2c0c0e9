"""Control Debian's chromium over a pipe (the DevTools protocol): no driver, no port, no library."""

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    # the browser itself would ask its maker for the time and for updates
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)
PATIENCE = 90.0


class Browser:
    """One page of a browser with a new profile; remembers what the console said and what was asked for."""

    def __init__(self, folder: Path) -> None:
        to_browser, ours = os.pipe()
        theirs, from_browser = os.pipe()
        command = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        arguments = [str(CHROMIUM), *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", command, "bash", *arguments],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._write, self._read = os.fdopen(ours, "wb", buffering=0), os.fdopen(theirs, "rb", buffering=0)
        self._buffer = b""
        self._number = 0
        self._session = ""
        self.said: list[str] = []
        self.requested: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM", "Accessibility"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Give an order and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._write.write(json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._number:
                assert "error" not in found, f"{method}: {found['error']}"
                result: dict[str, Any] = found["result"]
                return result
            self._note(found)

    def open(self, url: str) -> None:
        """Go to a page and wait until it is there."""
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, code: str) -> Any:
        """Return the value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, code: str) -> None:
        """Wait until an expression in the page is true; while a page changes there may be none to ask."""
        end = time.monotonic() + PATIENCE
        while True:
            found = self.call("Runtime.evaluate", expression=f"Boolean({code})", returnByValue=True)
            if found.get("result", {}).get("value") is True:
                return
            assert time.monotonic() < end, f"never true: {code}: {self.run('document.body.innerText')}"
            time.sleep(0.1)

    def leave(self, code: str) -> None:
        """Do something that leads to another page, and wait for that."""
        self.run("window.before = true")
        self.run(code)
        self.until("window.before === undefined && document.readyState === 'complete'")

    def type(self, selector: str, text: str) -> None:
        """Type into a field as a person does."""
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=text)

    def press(self, key: str, code: int) -> None:
        """Press and let go a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def choose(self, selector: str, path: Path) -> None:
        """Choose a file in a file field."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", files=[str(path)], nodeId=node)

    def width(self, pixels: int, height: int = 900) -> None:
        """Make the window this wide."""
        mobile = pixels < 500
        self.call("Emulation.setDeviceMetricsOverride", width=pixels, height=height, deviceScaleFactor=1, mobile=mobile)

    def dark(self, *, on: bool) -> None:
        """Prefer dark or light colours."""
        value = "dark" if on else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def picture(self, path: Path) -> Path:
        """Write what the window shows."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))
        return path

    def nameless(self) -> list[str]:
        """Return what can be reached by keyboard and has no name that could be read aloud."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        roles = {"button", "link", "textbox", "checkbox", "combobox", "spinbutton", "region", "table"}
        return [
            node["role"]["value"]
            for node in nodes
            if not node.get("ignored")
            and node.get("role", {}).get("value") in roles
            and not node.get("name", {}).get("value")
        ]

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._write.close()
        self._read.close()

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            data = self._read.read(1 << 16)
            assert data, "the browser ended"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def _note(self, event: dict[str, Any]) -> None:
        found = event.get("params", {})
        kinds: dict[str, Callable[[], None]] = {
            "Network.requestWillBeSent": lambda: self.requested.append(found["request"]["url"]),
            "Log.entryAdded": lambda: self.said.append(f"{found['entry']['level']}: {found['entry']['text']}"),
            "Runtime.exceptionThrown": lambda: self.said.append(str(found["exceptionDetails"])),
            "Runtime.consoleAPICalled": lambda: self.said.append(str(found["args"])),
        }
        kinds.get(event.get("method", ""), lambda: None)()
