"""What labels are worth: metrics of rows, of segments and by entropy, and their report.

Metrics take two arrays, or the labels of one video and its truth; those that can be pooled take
the counts of many videos, too.
"""
