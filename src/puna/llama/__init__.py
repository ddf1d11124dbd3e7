"""Handles over libllama's C functions. The only package that imports `llama_cpp` or ctypes.

A handle owns one C object and frees it; its methods check what C would not. Nothing here decides anything.
"""
