"""Pictures and sounds in prompts: where their vectors stand, how they get there, and which are kept."""
