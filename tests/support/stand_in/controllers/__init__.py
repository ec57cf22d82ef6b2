"""The controllers of a cluster on bare metal, on a Store: they do what the real ones are known to do.

Each is a class with `reconcile()`, which does what can be done now, and returns. `manager.Manager` calls them all.
"""
