"""The worker's side: scheduling, memory, sampling and the loop that ties them to the engine.

`scheduler`, `budget`, `prefix`, `sizing` and `slots` decide and are plain Python; `memory`, `runner` and `sampling` act.
"""
