"""llama-crab's and llama-cpp-python's routes for tokens."""
