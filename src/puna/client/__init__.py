"""The server's end of one worker: spawn, watch, restart, and turn its tokens into text."""
