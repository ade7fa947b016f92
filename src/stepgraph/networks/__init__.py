"""Networks that see: their layers, and how their weights are read from files.

Modules here are made of torch and import it at the top; everybody else imports them late.
"""
