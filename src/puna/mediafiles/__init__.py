"""Pictures and sounds: where a request has them from, and what they are as plain pixels and samples."""
