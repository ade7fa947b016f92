"""Training of a video model on the labels of the task graph.

Modules here import torch at the top; all other modules import them only when needed.
"""
