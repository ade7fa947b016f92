"""Torch networks: their layers, and reading of their weights from files.

Modules here import torch at the top; all other modules import them only when needed.
"""
