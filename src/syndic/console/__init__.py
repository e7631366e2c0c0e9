"""The console: what an owner or a coordinator sees, decides and watches in a browser, on their own machine.

Functions here take a folder and return documents; the pages, the local interface for programs and the command line
show the same ones. Only the modules `guard`, `web` and `serve` know the web libraries.
"""
