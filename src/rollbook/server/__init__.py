"""The dashboard's server: runs in a browser, live. Starlette on this machine; `rollbook ui` and `run.show()` start
it."""
