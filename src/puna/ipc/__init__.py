"""How the server and a worker talk: frames over one socket, and a black box for the worker's last moments."""
