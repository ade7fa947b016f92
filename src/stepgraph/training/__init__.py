"""Train a video model on the labels of the task graph.

Modules here are made of torch and import it at the top; everybody else imports them late.
"""
