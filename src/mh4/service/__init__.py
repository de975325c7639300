"""Parsing on clusters, and the HTTP server."""
