"""A small Kubernetes API server: objects in memory, served as kubectl expects them."""
