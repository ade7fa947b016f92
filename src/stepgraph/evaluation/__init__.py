"""Metrics of rows and segments, accuracy by entropy, checks of order, and their report.

Metrics take two arrays, or the labels of one video and its truth.  Pooled metrics also take the
counts of many videos.
"""
