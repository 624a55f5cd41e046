"""Nearest messages and topics of a scope: derived from the store, rebuilt on any doubt."""
