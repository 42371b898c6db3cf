"""Trained agents to watch and to experiment with: sessions, and the page that shows them."""
