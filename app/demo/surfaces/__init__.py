"""What the engines' surfaces look like, as data: families of their pages, lines of their starts, resolved arguments.

Taken from pages and logs of running engines (SGLang 0.5.23, vLLM 0.32) and, for what those lack, from their source.
"""
